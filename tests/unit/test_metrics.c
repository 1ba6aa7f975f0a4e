/* SPDX-License-Identifier: BSD-2-Clause */
/* The text that Prometheus reads: names, types, units, escapes and order. */
#include "cm.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "exposition.h"
#include "collect.h"
#include "families.h"
#include "kept.h"
#include "../../src/util/clock.h"

static const struct label none[] = {{NULL, NULL}};

struct text {
	struct exposition e;
	char *text;
	size_t len;
};

static void begin(struct text *t, bool is_openmetrics)
{
	*t = (struct text){.e = {.is_openmetrics = is_openmetrics}};
	t->e.out = open_memstream(&t->text, &t->len);
	assert_non_null(t->e.out);
}

static void end(struct text *t, const char *expected)
{
	assert_int_equal(fclose(t->e.out), 0);
	assert_string_equal(t->text, expected);
	free(t->text);
}

static void types_and_units_are_those_of_each_format(void **state)
{
	static const struct metric bytes = {"x_bytes", METRIC_COUNTER, "bytes",
					    "Help."};
	static const struct metric info = {"x", METRIC_INFO, NULL, "Help."};
	static const struct metric gauge = {"x_seconds", METRIC_GAUGE,
					    "seconds", "Help."};
	struct text t;

	(void)state;
	for (int is_openmetrics = 0; is_openmetrics < 2; is_openmetrics++) {
		begin(&t, is_openmetrics);
		exposition_begin(&t.e, &bytes);
		exposition_count(&t.e, none, UINT64_MAX);
		exposition_begin(&t.e, &info);
		exposition_count(&t.e, none, 1);
		exposition_begin(&t.e, &gauge);
		exposition_seconds(&t.e, none, 1000000001);
		exposition_end(&t.e);
		end(&t, is_openmetrics ? "# HELP x_bytes Help.\n"
					 "# TYPE x_bytes counter\n"
					 "# UNIT x_bytes bytes\n"
					 "x_bytes_total 18446744073709551615\n"
					 "# HELP x Help.\n"
					 "# TYPE x info\n"
					 "x_info 1\n"
					 "# HELP x_seconds Help.\n"
					 "# TYPE x_seconds gauge\n"
					 "# UNIT x_seconds seconds\n"
					 "x_seconds 1.000000001\n"
					 "# EOF\n"
				       : "# HELP x_bytes_total Help.\n"
					 "# TYPE x_bytes_total counter\n"
					 "x_bytes_total 18446744073709551615\n"
					 "# HELP x_info Help.\n"
					 "# TYPE x_info gauge\n"
					 "x_info 1\n"
					 "# HELP x_seconds Help.\n"
					 "# TYPE x_seconds gauge\n"
					 "x_seconds 1.000000001\n");
	}
}

/* Each series counts all before it, also what is between two series. */
static void histograms_are_cumulative(void **state)
{
	static const struct metric delays = {"x_seconds", METRIC_HISTOGRAM,
					     "seconds", "Help."};
	static const struct label labels[] = {{"a", "b"}, {NULL, NULL}};
	static const struct buckets buckets = {2, 6, 2};
	struct natra_histogram h = {.sum_ns = 12345678901};
	struct text t;

	(void)state;
	for (size_t i = 0; i < NATRA_HISTOGRAM_BUCKETS; i++)
		h.count[i] = 1;
	h.count[5] = 10;
	begin(&t, true);
	exposition_begin(&t.e, &delays);
	exposition_histogram(&t.e, labels, &h, &buckets);
	end(&t, "# HELP x_seconds Help.\n"
		"# TYPE x_seconds histogram\n"
		"# UNIT x_seconds seconds\n"
		"x_seconds_bucket{a=\"b\",le=\"0.000004096\"} 3\n"
		"x_seconds_bucket{a=\"b\",le=\"0.000016384\"} 5\n"
		"x_seconds_bucket{a=\"b\",le=\"0.000065536\"} 16\n"
		"x_seconds_bucket{a=\"b\",le=\"+Inf\"} 40\n"
		"x_seconds_sum{a=\"b\"} 12.345678901\n"
		"x_seconds_count{a=\"b\"} 40\n");
}

static void values_of_labels_are_escaped(void **state)
{
	static const struct metric gauge = {"x", METRIC_GAUGE, NULL, "Help."};
	const struct label labels[] = {{"a", "\"\\\n"},
				       {"b", NULL},
				       {"c", "\x1b\xff ~"},
				       {NULL, NULL}};
	struct text t;

	(void)state;
	begin(&t, false);
	exposition_begin(&t.e, &gauge);
	exposition_count(&t.e, labels, 0);
	exposition_count(&t.e, none, 0);
	exposition_end(&t.e);
	end(&t, "# HELP x Help.\n# TYPE x gauge\n"
		"x{a=\"\\\"\\\\\\n\",c=\"\\\\x1b\\\\xff ~\"} 0\nx 0\n");
}

/* A line may be longer than the buffer that it is written from. */
static void long_values_are_whole(void **state)
{
	static const struct metric gauge = {"x", METRIC_GAUGE, NULL, "Help."};
	char value[3001], expected[3100];
	const struct label labels[] = {{"a", value}, {NULL, NULL}};
	struct text t;

	(void)state;
	for (size_t len = 1000; len < sizeof(value); len += 500) {
		for (size_t i = 0; i < len; i++)
			value[i] = (char)('a' + i % 26);
		value[len] = '\0';
		(void)snprintf(
			expected, sizeof(expected),
			"# HELP x Help.\n# TYPE x gauge\nx{a=\"%s\"} 5\n",
			value);
		begin(&t, false);
		exposition_begin(&t.e, &gauge);
		exposition_count(&t.e, labels, 5);
		end(&t, expected);
	}
}

static void a_metric_without_samples_is_left_out(void **state)
{
	static const struct metric gauge = {"x", METRIC_GAUGE, NULL, "Help."};
	struct text t;

	(void)state;
	begin(&t, true);
	exposition_begin(&t.e, &gauge);
	exposition_end(&t.e);
	end(&t, "# EOF\n");
}

static void the_client_chooses_the_format(void **state)
{
	static const struct {
		const char *accept;
		bool is_openmetrics;
	} rows[] = {
		{NULL, false},
		{"", false},
		{"*/*", false},
		{"text/plain", false},
		{"application/openmetrics-text", true},
		{"application/openmetrics-text;version=1.0.0", true},
		{"application/openmetrics-text; version=1.0.0; q=0.5", true},
		{"application/openmetrics-text;version=0.0.1", false},
		{"application/openmetrics-text;version=2.0.0,text/plain",
		 false},
		/* Prometheus 2.42. */
		{"application/openmetrics-text;version=1.0.0,"
		 "application/openmetrics-text;version=0.0.1;q=0.75,"
		 "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
		 true},
		{"text/plain;q=0.9,application/openmetrics-text;q=0.8", false},
		{"text/plain;q=0.7, application/openmetrics-text;q=0.8", true},
		{"application/openmetrics-text;q=0", false},
		{"application/openmetrics-text;q=", true},
		{"application/openmetrics-text;q=x", false},
		{"application/openmetrics-textual", false},
		{",,;;q=1,", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(exposition_accepts_openmetrics(rows[i].accept),
				 rows[i].is_openmetrics);
}

static void only_names_of_pods_become_labels(void **state)
{
	static const char *const pods[] = {"shop/web-0", "a/b", "0/0.1-x.y"};
	static const char *const others[] = {
		"",         "/",     "shop",  "shop/",  "/web",
		"Shop/web", "a/b/c", "a.b/c", "a/-b",   "a/b-",
		"-a/b",     "a-/b",  "a/.b",  "a/b.",   "a/b..c",
		"a/b.-c",   "a/b\n", "a b/c", "a/\xc3", "x/free text"};
	char namespace[NAMESPACE_MAX + 1], pod[POD_MAX + 1], text[400];

	(void)state;
	for (size_t i = 0; i < sizeof(pods) / sizeof(pods[0]); i++) {
		assert_true(split_label(pods[i], namespace, pod));
		(void)snprintf(text, sizeof(text), "%s/%s", namespace, pod);
		assert_string_equal(text, pods[i]);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		assert_false(split_label(others[i], namespace, pod));
		assert_string_equal(namespace, "");
		assert_string_equal(pod, "");
	}
	memset(text, 'a', 66);
	memcpy(text + 64, "/a", 3);
	assert_false(split_label(text, namespace, pod));
	assert_true(split_label(text + 1, namespace, pod));
}

static struct pod_metrics a_pod(const char *label, const char *id,
				uint64_t bytes)
{
	struct pod_metrics pod = {.has_stats = true};

	(void)snprintf(pod.info.id, sizeof(pod.info.id), "%s", id);
	(void)snprintf(pod.info.ifname, sizeof(pod.info.ifname), "eth0");
	(void)split_label(label, pod.namespace, pod.pod);
	pod.info.egress_prog_id = 1;
	pod.info.edt_active = true;
	pod.info.mode = NATRA_MODE_TCX_PODSIDE;
	pod.info.effective.egress_rate_bits_per_sec = 8000;
	pod.stats.egress.mice.bytes = bytes;
	pod.stats.egress.paced.bytes = 10 * bytes;
	pod.stats.egress.dropped_rate.bytes = 100 * bytes;
	pod.stats.egress.dropped_horizon.bytes = 1000 * bytes;
	pod.stats.egress.other.bytes = 10000 * bytes;
	pod.stats.egress.unlimited.bytes = 100000 * bytes;
	pod.stats.egress_delays.count[10] = bytes;
	if (pod.pod[0])
		pod.info.policy.sli = NATRA_SLI_ON;
	pod.stats.egress_connects.accepted.count[12] = bytes;
	pod.stats.egress_connects.begun = 2 * bytes;
	pod.stats.egress_connects.repeated = 3 * bytes;
	pod.stats.egress_connects.refused = 4 * bytes;
	pod.stats.egress_connects.forgotten = 5 * bytes;
	return pod;
}

/* Returns what is written about three attachments, of which two are of one pod's
 * name. The caller frees it. */
static char *write_three(const struct families_options *o)
{
	struct pod_metrics list[] = {
		a_pod("free text", "id-0", 1),
		a_pod("shop/web", "id-1", 2),
		a_pod("shop/web", "id-2", 3),
	};
	struct node_metrics node = {.list = list, .len = 3};
	struct text t;

	list[2].is_again = true;
	begin(&t, false);
	assert_int_equal(families_write(&t.e, &node, o), 0);
	assert_int_equal(fclose(t.e.out), 0);
	return t.text;
}

static void check_lines(char *text, const char *const *lines)
{
	for (; *lines; lines++) {
		if (!strstr(text, *lines))
			fail_msg("no '%s' in:\n%s", *lines, text);
	}
	free(text);
}

static void no_two_series_have_the_same_labels(void **state)
{
	static const char *const lines[] = {
		"natra_bytes_total{interface=\"eth0\",attachment=\"id-0\","
		"direction=\"egress\",verdict=\"mice\"} 1\n",
		"natra_bytes_total{namespace=\"shop\",pod=\"web\","
		"interface=\"eth0\",direction=\"egress\",verdict=\"paced\"} 20\n",
		"natra_bytes_total{namespace=\"shop\",pod=\"web\","
		"interface=\"eth0\",attachment=\"id-2\",direction=\"egress\","
		"verdict=\"paced\"} 30\n",
		"natra_limit_bytes_per_second{namespace=\"shop\",pod=\"web\","
		"interface=\"eth0\",direction=\"egress\"} 1000\n",
		"natra_attachments{mode=\"tcx-podside\"} 3\n",
		"natra_connect_seconds_count{namespace=\"shop\",pod=\"web\","
		"interface=\"eth0\",direction=\"egress\"} 2\n",
		"natra_connect_seconds_bucket{namespace=\"shop\",pod=\"web\","
		"interface=\"eth0\",direction=\"egress\",le=\"0.002097152\"} 0\n",
		"natra_connect_seconds_bucket{namespace=\"shop\",pod=\"web\","
		"interface=\"eth0\",direction=\"egress\",le=\"0.004194304\"} 2\n",
		"natra_connects_begun_total{namespace=\"shop\",pod=\"web\","
		"interface=\"eth0\",direction=\"egress\"} 4\n",
		"natra_connect_syns_repeated_total{namespace=\"shop\",pod=\"web\","
		"interface=\"eth0\",direction=\"egress\"} 6\n",
		"natra_connects_refused_total{namespace=\"shop\",pod=\"web\","
		"interface=\"eth0\",direction=\"egress\"} 8\n",
		"natra_connects_forgotten_total{namespace=\"shop\",pod=\"web\","
		"interface=\"eth0\",direction=\"egress\"} 10\n",
		NULL};
	static const struct families_options o;
	char *text = write_three(&o);

	(void)state;
	assert_null(strstr(text, "natra_connects_begun_total{interface"));
	/* Nothing is known of what goes into the pod. */
	assert_null(strstr(text, "direction=\"ingress\""));
	check_lines(text, lines);
}

/* Each class has series of its own, and the rest those without such a label. What is
 * known of the attachment is there once. */
static void classes_have_their_label(void **state)
{
	static const char *const lines[] = {
		"natra_bytes_total{namespace=\"shop\",pod=\"web\","
		"interface=\"eth0\",direction=\"egress\",verdict=\"mice\"} 5\n"
		"natra_bytes_total{namespace=\"shop\",pod=\"web\","
		"interface=\"eth0\",direction=\"egress\",verdict=\"admitted\"} 0\n",
		"interface=\"eth0\",class=\"lan\",direction=\"egress\","
		"verdict=\"mice\"} 7\n",
		"interface=\"eth0\",direction=\"egress\"} 1000\n"
		"natra_limit_bytes_per_second{namespace=\"shop\",pod=\"web\","
		"interface=\"eth0\",class=\"lan\",direction=\"egress\"} 3000\n",
		"natra_attachments{mode=\"tcx-podside\"} 1\n", NULL};
	static const char *const sums[] = {
		"natra_bytes_total{namespace=\"shop\",direction=\"egress\","
		"verdict=\"mice\"} 12\n",
		NULL};
	struct class_metrics classes[2] = {
		{.egress_bytes_per_sec = 1000},
		{.name = "lan", .egress_bytes_per_sec = 3000}};
	struct pod_metrics pod = a_pod("shop/web", "id-1", 12);
	struct node_metrics node = {.list = &pod, .len = 1};
	const char *info;
	struct text t;

	(void)state;
	classes[0].stats.egress.mice.bytes = 5;
	classes[1].stats.egress.mice.bytes = 7;
	pod.classes = classes;
	pod.classes_len = 2;
	for (int is_sum = 0; is_sum < 2; is_sum++) {
		const struct families_options o = {.by_namespace = is_sum};

		begin(&t, false);
		assert_int_equal(families_write(&t.e, &node, &o), 0);
		assert_int_equal(fclose(t.e.out), 0);
		info = strstr(t.text, "natra_unshaped{");
		assert_non_null(info);
		assert_null(strstr(info + 1, "natra_unshaped{"));
		check_lines(t.text, is_sum ? sums : lines);
	}
}

static void basic_verdicts_are_sums(void **state)
{
	static const char *const lines[] = {
		"attachment=\"id-0\",direction=\"egress\",verdict=\"passed\"} 10001\n",
		"attachment=\"id-0\",direction=\"egress\",verdict=\"delayed\"} 10\n",
		"attachment=\"id-0\",direction=\"egress\",verdict=\"marked\"} 0\n",
		"attachment=\"id-0\",direction=\"egress\",verdict=\"dropped\"} 1100\n",
		/* It would count as over the limit if it were in "passed". */
		"attachment=\"id-0\",direction=\"egress\",verdict=\"unlimited\"} 100000\n",
		NULL};
	static const struct families_options o = {.is_basic = true};

	(void)state;
	check_lines(write_three(&o), lines);
}

static void namespaces_are_sums(void **state)
{
	static const char *const lines[] = {
		"natra_bytes_total{direction=\"egress\",verdict=\"mice\"} 1\n",
		"natra_bytes_total{namespace=\"shop\",direction=\"egress\","
		"verdict=\"mice\"} 5\n",
		"natra_limit_bytes_per_second{namespace=\"shop\","
		"direction=\"egress\"} 2000\n",
		"natra_delay_seconds_bucket{namespace=\"shop\","
		"direction=\"egress\",le=\"0.000131072\"} 0\n",
		"natra_delay_seconds_bucket{namespace=\"shop\","
		"direction=\"egress\",le=\"8.589934592\"} 5\n",
		"natra_connects_begun_total{namespace=\"shop\","
		"direction=\"egress\"} 10\n",
		"natra_unshaped{namespace=\"shop\"} 0\n",
		NULL};
	static const struct families_options o = {.by_namespace = true};

	(void)state;
	check_lines(write_three(&o), lines);
}

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

	assert_int_equal(last ? kept_update(&node, last, *len, kept, len)
			      : kept_begin(&node, kept, len),
			 0);
	free(last);
	begin(&t, false);
	assert_int_equal(families_write(&t.e, &node, &o), 0);
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

static void a_sum_never_falls(void **state)
{
	struct pod_metrics first[] = {counting("a", 100), counting("b", 10)};
	struct pod_metrics two[] = {counting("a", 120), counting("b", 10)};
	struct pod_metrics left[] = {counting("b", 11)};
	struct pod_metrics anew[] = {counting("b", 1), counting("c", 5)};
	struct kept *kept = NULL;
	size_t len = 0;

	(void)state;
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

static void what_is_missed_for_a_moment_counts_once(void **state)
{
	struct pod_metrics two[] = {counting("a", 100), counting("b", 10)};
	struct pod_metrics *b = &two[1];
	struct kept *kept = NULL;
	size_t len = 0;

	(void)state;
	assert_int_equal(scrape(&kept, &len, two, 2), 0);
	two[0] = counting("a", 101);
	assert_int_equal(scrape(&kept, &len, two, 2), 1);
	for (int i = 0; i < KEPT_MISSES_MAX; i++)
		assert_int_equal(scrape(&kept, &len, b, 1), 1);
	two[0] = counting("a", 103);
	assert_int_equal(scrape(&kept, &len, two, 2), 3);
	free(kept);
}

static void pods_after_the_first_scrape_count_from_0(void **state)
{
	struct pod_metrics one = counting("a", 7);
	struct kept *kept = NULL;
	size_t len = 0;

	(void)state;
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

static void an_older_pod_that_was_not_read_begins_at_0(void **state)
{
	struct pod_metrics two[] = {counting("a", 100), counting("b", 7)};
	struct kept *kept = NULL;
	const uint64_t date_ns = set_pin(&two[0]) + SCRAPE_NS + NS_PER_S;
	size_t len = 0;

	(void)state;
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
static void a_younger_pod_counts_from_0(void **state)
{
	struct pod_metrics two[] = {counting("a", 100), counting("b", 7)};
	const uint64_t made_ns = set_pin(&two[0]);
	const uint64_t dates_ns[] = {
		made_ns + SCRAPE_NS,
		made_ns + 1,
		made_ns - 100 * NS_PER_S,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(dates_ns) / sizeof(dates_ns[0]); i++) {
		struct kept *kept = NULL;
		size_t len = 0;

		assert_int_equal(scrape(&kept, &len, &two[1], 1), 0);
		assert_int_equal(scrape_at(dates_ns[i], &kept, &len, two, 2),
				 100);
		free(kept);
	}
}

/* A direction without a rate has no series. */
static void groups_have_series(void **state)
{
	struct group_metrics group = {
		.name = "team",
		.info = {.egress_rate_bits_per_sec = 80,
			 .members = 3,
			 .ingress_charged = {1, 2},
			 .egress_charged = {4, 500}},
	};
	const struct node_metrics node = {.groups = &group, .groups_len = 1};
	const struct families_options options = {0};
	struct text t;

	(void)state;
	begin(&t, false);
	assert_int_equal(families_write(&t.e, &node, &options), 0);
	assert_int_equal(fclose(t.e.out), 0);
#define GROUP(name) "natra_group_" name "{group=\"team\",direction=\"egress\"} "
	assert_non_null(strstr(t.text, GROUP("bytes_total") "500\n"));
	assert_non_null(strstr(t.text, GROUP("packets_total") "4\n"));
	assert_non_null(strstr(t.text, GROUP("limit_bytes_per_second") "10\n"));
	assert_non_null(
		strstr(t.text, "natra_group_members{group=\"team\"} 3\n"));
	assert_null(strstr(t.text, "team\",direction=\"ingress"));
	free(t.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_have_series),
		cmocka_unit_test(types_and_units_are_those_of_each_format),
		cmocka_unit_test(histograms_are_cumulative),
		cmocka_unit_test(values_of_labels_are_escaped),
		cmocka_unit_test(long_values_are_whole),
		cmocka_unit_test(a_metric_without_samples_is_left_out),
		cmocka_unit_test(the_client_chooses_the_format),
		cmocka_unit_test(only_names_of_pods_become_labels),
		cmocka_unit_test(no_two_series_have_the_same_labels),
		cmocka_unit_test(classes_have_their_label),
		cmocka_unit_test(basic_verdicts_are_sums),
		cmocka_unit_test(namespaces_are_sums),
		cmocka_unit_test(a_sum_never_falls),
		cmocka_unit_test(what_is_missed_for_a_moment_counts_once),
		cmocka_unit_test(pods_after_the_first_scrape_count_from_0),
		cmocka_unit_test(an_older_pod_that_was_not_read_begins_at_0),
		cmocka_unit_test(a_younger_pod_counts_from_0),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
