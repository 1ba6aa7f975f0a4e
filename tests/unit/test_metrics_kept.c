/* SPDX-License-Identifier: BSD-2-Clause */
/* Sums over pods never fall, whichever pods come and go between two scrapes. */
#include "cm.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "families.h"
#include "kept.h"
#include "metrics_pod.h"
#include "../../src/util/clock.h"

/* The time between two scrapes. */
#define SCRAPE_NS (15 * NS_PER_S)

/* Returns the bytes of namespace "shop" after a scrape on this date that finds these
 * pods. */
static uint64_t scrape_at(uint64_t date_ns, struct kept **kept, size_t *len,
			  struct pod_metrics *pods, size_t pods_len)
{
	static const struct families_options o = {.by_namespace = true};
	static const char line[] = "natra_bytes_total{namespace=\"shop\","
				   "direction=\"egress\",verdict=\"mice\"} ";
	struct node_metrics node = {
		.list = pods,
		.len = pods_len,
		.last_began_ns = 1000 * NS_PER_S,
		.began_ns = 1000 * NS_PER_S + SCRAPE_NS,
		.date_ns = date_ns,
	};
	struct kept *last = *kept;
	static const char *const others[] = {
		"natra_delay_seconds_count{namespace=\"shop\","
		"direction=\"egress\"} ",
		"natra_connect_seconds_count{namespace=\"shop\","
		"direction=\"egress\"} ",
	};
	uint64_t value = 0;
	const char *found;
	struct text t;

	*kept = last ? kept_update(&node, last, *len, len)
		     : kept_begin(&node, len);
	free(last);
	begin(&t, false);
	families_write(&t.e, &node, &o);
	assert_int_equal(fclose(t.e.out), 0);
	found = strstr(t.text, line);
	if (found)
		value = strtoull(found + strlen(line), NULL, 10);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		found = strstr(t.text, others[i]);
		if (found)
			assert_int_equal(
				strtoull(found + strlen(others[i]), NULL, 10),
				value);
	}
	free(t.text);
	return value;
}

static uint64_t scrape(struct kept **kept, size_t *len,
		       struct pod_metrics *pods, size_t pods_len)
{
	return scrape_at(0, kept, len, pods, pods_len);
}

static struct pod_metrics counting(const char *id, uint64_t n)
{
	struct pod_metrics pod = a_pod("shop/web", id, n);

	pod.stats.egress.mice.packets = n;
	return pod;
}

TH_TEST(a_sum_never_falls)
{
	struct pod_metrics first[] = {counting("a", 100), counting("b", 10)};
	struct pod_metrics two[] = {counting("a", 120), counting("b", 10)};
	struct pod_metrics left[] = {counting("b", 11)};
	struct pod_metrics anew[] = {counting("b", 1), counting("c", 5)};
	struct kept *kept = NULL;
	size_t len = 0;

	/* A counter that were not near 0 would be added again after a restart. */
	assert_int_equal(scrape(&kept, &len, first, 2), 0);
	assert_int_equal(scrape(&kept, &len, first, 2), 0);
	assert_int_equal(scrape(&kept, &len, two, 2), 20);
	for (int i = 0; i < 2 * KEPT_MISSES_MAX; i++)
		assert_int_equal(scrape(&kept, &len, left, 1), 21);
	/* The counters of one began again. */
	assert_int_equal(scrape(&kept, &len, anew, 2), 27);
	/* Without pods there is no series; a later pod adds to the sum. */
	assert_int_equal(scrape(&kept, &len, NULL, 0), 0);
	assert_int_equal(scrape(&kept, &len, left, 1), 37);
	free(kept);
}

TH_TEST(what_is_missed_for_a_moment_counts_once)
{
	struct pod_metrics two[] = {counting("a", 100), counting("b", 10)};
	struct pod_metrics *b = &two[1];
	struct kept *kept = NULL;
	size_t len = 0;

	assert_int_equal(scrape(&kept, &len, two, 2), 0);
	two[0] = counting("a", 101);
	assert_int_equal(scrape(&kept, &len, two, 2), 1);
	for (int i = 0; i < KEPT_MISSES_MAX; i++)
		assert_int_equal(scrape(&kept, &len, b, 1), 1);
	two[0] = counting("a", 103);
	assert_int_equal(scrape(&kept, &len, two, 2), 3);
	free(kept);
}

TH_TEST(pods_after_the_first_scrape_count_from_0)
{
	struct pod_metrics one = counting("a", 7);
	struct kept *kept = NULL;
	size_t len = 0;

	assert_int_equal(scrape(&kept, &len, NULL, 0), 0);
	assert_int_equal(scrape(&kept, &len, &one, 1), 7);
	free(kept);
}

/* A directory that is there takes the place of the pins. Returns its date. */
static uint64_t set_pin(struct pod_metrics *pod)
{
	struct stat st;

	memcpy(pod->info.pin_path, "/", 2);
	assert_int_equal(stat("/", &st), 0);
	return (uint64_t)st.st_mtim.tv_sec * NS_PER_S +
	       (uint64_t)st.st_mtim.tv_nsec;
}

TH_TEST(an_older_pod_that_was_not_read_begins_at_0)
{
	struct pod_metrics two[] = {counting("a", 100), counting("b", 7)};
	struct kept *kept = NULL;
	const uint64_t date_ns = set_pin(&two[0]) + SCRAPE_NS + NS_PER_S;
	size_t len = 0;

	assert_int_equal(scrape(&kept, &len, &two[1], 1), 0);
	assert_int_equal(scrape_at(date_ns, &kept, &len, two, 2), 0);
	two[0].stats.egress.mice.packets += 5;
	two[0].stats.egress.mice.bytes += 5;
	two[0].stats.egress_delays.count[10] += 5;
	two[0].stats.egress_connects.accepted.count[12] += 5;
	assert_int_equal(scrape_at(date_ns, &kept, &len, two, 2), 5);
	free(kept);
}

/* When the clock was set back before or after the pod was made, that changes nothing. */
TH_TEST(a_younger_pod_counts_from_0)
{
	struct pod_metrics two[] = {counting("a", 100), counting("b", 7)};
	const uint64_t made_ns = set_pin(&two[0]);
	const uint64_t dates_ns[] = {
		made_ns + SCRAPE_NS,
		made_ns + 1,
		made_ns - 100 * NS_PER_S,
	};

	for (size_t i = 0; i < sizeof(dates_ns) / sizeof(dates_ns[0]); i++) {
		struct kept *kept = NULL;
		size_t len = 0;

		assert_int_equal(scrape(&kept, &len, &two[1], 1), 0);
		assert_int_equal(scrape_at(dates_ns[i], &kept, &len, two, 2),
				 100);
		free(kept);
	}
}

/* Returns what a scrape at this time, which finds a pod of a namespace or none, leaves of the
 * namespace "old" and of how many others. */
static bool keeps_old(struct kept **kept, size_t *len, uint64_t now_s,
		      const char *namespace, size_t *ret_others)
{
	struct pod_metrics pod = counting("x", 1);
	struct node_metrics node = {
		.list = &pod,
		.len = namespace ? 1 : 0,
		.began_ns = now_s * NS_PER_S,
		.last_began_ns = now_s * NS_PER_S - 1,
	};
	struct kept *last = *kept;
	bool found = false;

	if (namespace)
		(void)snprintf(pod.namespace, sizeof(pod.namespace), "%s",
			       namespace);
	*kept = kept_update(&node, last, *len, len);
	free(last);
	*ret_others = 0;
	for (size_t i = 0; i < *len; i++) {
		bool is_old = strcmp((*kept)[i].namespace, "old") == 0;

		if ((*kept)[i].id[0])
			continue;
		found |= is_old;
		*ret_others += !is_old;
	}
	return found;
}

static struct kept *sums_named(size_t len)
{
	struct kept *list = calloc(len, sizeof(*list));

	for (size_t i = 0; i < len; i++) {
		(void)snprintf(list[i].namespace, sizeof(list[i].namespace),
			       i ? "ci-%zu" : "old", i);
		list[i].seen_ns = 100 * NS_PER_S;
	}
	return list;
}

TH_TEST(sums_without_pods_go)
{
	struct kept *kept = sums_named(2);
	size_t len = 2, others;

	/* It has pods, and then none for a day. */
	assert_true(keeps_old(&kept, &len, 1000, "old", &others));
	assert_int_equal(others, 1);
	assert_true(keeps_old(&kept, &len, 1000 + 86390, NULL, &others));
	for (int i = 0; i < KEPT_MISSES_MAX; i++)
		(void)keeps_old(&kept, &len, 1000 + 86391, NULL, &others);
	assert_int_equal(others, 0);
	assert_true(keeps_old(&kept, &len, 2 * 86400, NULL, &others));
	assert_false(keeps_old(&kept, &len, 3 * 86400, NULL, &others));
	free(kept);
}

TH_TEST(sums_are_bounded)
{
	const size_t many = 5000;
	struct kept *kept = sums_named(many);
	size_t len = many, others;

	/* The one that has pods is the oldest, and stays. */
	assert_true(keeps_old(&kept, &len, 200, "old", &others));
	assert_int_equal(others, KEPT_IDLE_MAX);
	assert_string_equal(kept[others].namespace, "ci-4999");
	free(kept);
}

TH_MAIN(NULL, NULL)
