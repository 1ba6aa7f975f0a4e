/* SPDX-License-Identifier: BSD-2-Clause */
/* The text that Prometheus reads: names, types, units, escapes and order. */
#include "cm.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "exposition.h"
#include "collect.h"
#include "families.h"
#include "metrics_pod.h"

static const struct label none[] = {{NULL, NULL}};

static void end(struct text *t, const char *expected)
{
	assert_int_equal(fclose(t->e.out), 0);
	assert_string_equal(t->text, expected);
	free(t->text);
}

TH_TEST(types_and_units_are_those_of_each_format)
{
	static const struct metric bytes = {"x_bytes", METRIC_COUNTER, "bytes",
					    "Help."};
	static const struct metric info = {"x", METRIC_INFO, NULL, "Help."};
	static const struct metric gauge = {"x_seconds", METRIC_GAUGE,
					    "seconds", "Help."};
	struct text t;

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
TH_TEST(histograms_are_cumulative)
{
	static const struct metric delays = {"x_seconds", METRIC_HISTOGRAM,
					     "seconds", "Help."};
	static const struct label labels[] = {{"a", "b"}, {NULL, NULL}};
	static const struct buckets buckets = {2, 6, 2};
	struct natra_histogram h = {.sum_ns = 12345678901};
	struct text t;

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

TH_TEST(values_of_labels_are_escaped)
{
	static const struct metric gauge = {"x", METRIC_GAUGE, NULL, "Help."};
	const struct label labels[] = {{"a", "\"\\\n"},
				       {"b", NULL},
				       {"c", "\x1b\xff ~"},
				       {NULL, NULL}};
	struct text t;

	begin(&t, false);
	exposition_begin(&t.e, &gauge);
	exposition_count(&t.e, labels, 0);
	exposition_count(&t.e, none, 0);
	exposition_end(&t.e);
	end(&t, "# HELP x Help.\n# TYPE x gauge\n"
		"x{a=\"\\\"\\\\\\n\",c=\"\\\\x1b\\\\xff ~\"} 0\nx 0\n");
}

/* A line may be longer than the buffer that it is written from. */
TH_TEST(long_values_are_whole)
{
	static const struct metric gauge = {"x", METRIC_GAUGE, NULL, "Help."};
	char value[3001], expected[3100];
	const struct label labels[] = {{"a", value}, {NULL, NULL}};
	struct text t;

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

TH_TEST(a_metric_without_samples_is_left_out)
{
	static const struct metric gauge = {"x", METRIC_GAUGE, NULL, "Help."};
	struct text t;

	begin(&t, true);
	exposition_begin(&t.e, &gauge);
	exposition_end(&t.e);
	end(&t, "# EOF\n");
}

TH_TEST(the_client_chooses_the_format)
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

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(exposition_accepts_openmetrics(rows[i].accept),
				 rows[i].is_openmetrics);
}

TH_TEST(only_names_of_pods_become_labels)
{
	static const char *const pods[] = {"shop/web-0", "a/b", "0/0.1-x.y"};
	static const char *const others[] = {
		"",         "/",     "shop",  "shop/",  "/web",
		"Shop/web", "a/b/c", "a.b/c", "a/-b",   "a/b-",
		"-a/b",     "a-/b",  "a/.b",  "a/b.",   "a/b..c",
		"a/b.-c",   "a/b\n", "a b/c", "a/\xc3", "x/free text"};
	char namespace[NAMESPACE_MAX + 1], pod[POD_MAX + 1], text[400];

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

/* Returns what is written about a node. The caller frees it. */
static char *written(const struct node_metrics *node,
		     const struct families_options *o)
{
	struct text t;

	begin(&t, false);
	families_write(&t.e, node, o);
	assert_int_equal(fclose(t.e.out), 0);
	return t.text;
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

	list[2].is_again = true;
	return written(&node, o);
}

static void check_lines(char *text, const char *const *lines)
{
	for (; *lines; lines++) {
		if (!strstr(text, *lines))
			fail_msg("no '%s' in:\n%s", *lines, text);
	}
	free(text);
}

TH_TEST(no_two_series_have_the_same_labels)
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
		"natra_connects_repeated_total{namespace=\"shop\",pod=\"web\","
		"interface=\"eth0\",direction=\"egress\"} 6\n",
		"natra_connects_refused_total{namespace=\"shop\",pod=\"web\","
		"interface=\"eth0\",direction=\"egress\"} 8\n",
		"natra_connects_forgotten_total{namespace=\"shop\",pod=\"web\","
		"interface=\"eth0\",direction=\"egress\"} 10\n",
		NULL};
	static const struct families_options o;
	char *text = write_three(&o);

	assert_null(strstr(text, "natra_connects_begun_total{interface"));
	/* Nothing is known of what goes into the pod. */
	assert_null(strstr(text, "direction=\"ingress\""));
	check_lines(text, lines);
}

/* Each class has series of its own, and the rest those without such a label. What is
 * known of the attachment is there once. */
TH_TEST(classes_have_their_label)
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
		"natra_limit_bytes_per_second{namespace=\"shop\","
		"direction=\"egress\"} 4000\n",
		NULL};
	struct class_metrics classes[2] = {
		{.egress_bytes_per_sec = 1000},
		{.name = "lan", .egress_bytes_per_sec = 3000}};
	struct pod_metrics pod = a_pod("shop/web", "id-1", 12);
	struct node_metrics node = {.list = &pod, .len = 1};

	classes[0].stats.egress.mice.bytes = 5;
	classes[1].stats.egress.mice.bytes = 7;
	pod.classes = classes;
	pod.classes_len = 2;
	for (int is_sum = 0; is_sum < 2; is_sum++) {
		const struct families_options o = {.by_namespace = is_sum};
		char *text = written(&node, &o);
		const char *info = strstr(text, "natra_unshaped{");

		assert_non_null(info);
		assert_null(strstr(info + 1, "natra_unshaped{"));
		check_lines(text, is_sum ? sums : lines);
	}
}

TH_TEST(basic_verdicts_are_sums)
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

	check_lines(write_three(&o), lines);
}

TH_TEST(namespaces_are_sums)
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

	check_lines(write_three(&o), lines);
}

/* The least limit is 1 bit/s. */
TH_TEST(limits_of_a_few_bits_have_series)
{
	static const char *const lines[] = {
		"natra_limit_bytes_per_second{namespace=\"shop\",pod=\"web\","
		"interface=\"eth0\",direction=\"egress\"} 1\n",
		"natra_limit_burst_bytes{namespace=\"shop\",pod=\"web\","
		"interface=\"eth0\",direction=\"egress\"} 0\n",
		"natra_group_limit_bytes_per_second{group=\"team\","
		"kind=\"administrator\",direction=\"egress\"} 1\n",
		"natra_group_charged_packets_total{group=\"team\","
		"kind=\"administrator\",direction=\"egress\"} 4\n",
		NULL};
	static const struct families_options o;
	struct pod_metrics pod = a_pod("shop/web", "id-1", 1);
	struct group_metrics group = {
		.name = "team",
		.info = {.egress_rate_bits_per_sec = 1,
			 .egress_charged = {4, 500}},
	};
	const struct node_metrics node = {
		.list = &pod, .len = 1, .groups = &group, .groups_len = 1};

	pod.info.effective.egress_rate_bits_per_sec = 7;
	check_lines(written(&node, &o), lines);
}

/* Whoever reads a 0 of before takes it for something that was found. */
TH_TEST(what_an_inspection_finds_waits_for_it)
{
	static const char *const names[] = {"natra_bypassed_ratio{",
					    "natra_check_failed{",
					    "natra_program_before{"};
	struct pod_metrics pod = a_pod("shop/web", "id-1", 1);
	const struct node_metrics node = {.list = &pod, .len = 1};

	for (int by_namespace = 0; by_namespace < 2; by_namespace++) {
		const struct families_options o = {.by_namespace =
							   by_namespace};

		for (int is_inspected = 0; is_inspected < 2; is_inspected++) {
			char *text;

			pod.is_inspected = is_inspected;
			text = written(&node, &o);
			for (size_t i = 0; i < 3; i++)
				assert_int_equal(strstr(text, names[i]) != NULL,
						 is_inspected);
			free(text);
		}
	}
}

/* A direction without a rate has no series. */
TH_TEST(groups_have_series)
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
	char *text = written(&node, &options);

#define GROUP(name)                                                            \
	"natra_group_" name                                                    \
	"{group=\"team\",kind=\"administrator\",direction=\"egress\"} "
	assert_non_null(strstr(text, GROUP("charged_bytes_total") "500\n"));
	assert_non_null(strstr(text, GROUP("charged_packets_total") "4\n"));
	assert_non_null(strstr(text, GROUP("limit_bytes_per_second") "10\n"));
	assert_non_null(strstr(
		text,
		"natra_group_members{group=\"team\",kind=\"administrator\"} 3\n"));
	assert_null(strstr(text, "team\",direction=\"ingress"));
	free(text);
}

TH_MAIN(NULL, NULL)
