/* SPDX-License-Identifier: BSD-2-Clause */
#include "cni_input.h"

#include "result.h"

#define REQUEST(version, prev_result)                                          \
	"{\"cniVersion\":\"" version "\",\"name\":\"net\",\"prevResult\":"     \
	"" prev_result "}"

static int make(const char *text, char **ret_result, struct failure *failure)
{
	struct conf conf = conf_of(text);
	int r = result_make(&conf, ret_result, failure);

	conf_free(&conf);
	return r;
}

static void expect(const char *text, const char *want)
{
	struct failure failure = {0};
	char *result = NULL;

	if (make(text, &result, &failure))
		fail_msg("%s: %s", text, failure.msg);
	assert_string_equal(result, want);
	cJSON_free(result);
}

/* natra changes nothing in the result, not even the spelling. */
TH_TEST(a_result_in_the_same_version_is_passed_through)
{
	static const char *const results[] = {
		"{\"cniVersion\":\"1.0.0\"}",
		"{ \"ips\" : [] ,\"cniVersion\":\"1.0.0\" }",
		"{\"CNIVERSION\":\"1.0.0\",\"x\":{\"y\":[1,null,true,{}]}}",
		"{\"cniVersion\":\"1.0.0\",\"n\":[18446744073709551615,"
		"-9223372036854775808,9007199254740993,1e-7,1.50,1E+2]}",
		"{\"cniVersion\":\"1.0.0\",\"s\":\"a\\u0000b\\/\\ud83d\\ude00"
		"\\\"}\"}",
		"{\"cniVersion\":\"1.0.0\",\"bytes\":\"\xff\xfe\"}",
		"{\"cniVersion\":\"1.0.0\",\"a\":1,\"a\":2,\"A\":3}",
		"{\"cniVersion\":\"9.9\",\"cniVersion\":\"1.0.0\"}",
	};
	char text[512];

	for (size_t i = 0; i < TH_LEN(results); i++) {
		(void)snprintf(text, sizeof(text), REQUEST("1.0.0", "%s"),
			       results[i]);
		expect(text, results[i]);
	}
	/* The last of two keys counts here, too. */
	expect("{\"cniVersion\":\"1.0.0\",\"name\":\"n\",\"prevResult\":5,"
	       "\"PrevResult\" : {\"cniVersion\":\"1.0.0\"},\"x\":{}}",
	       "{\"cniVersion\":\"1.0.0\"}");
}

TH_TEST(a_missing_version_is_that_of_the_request)
{
	expect(REQUEST("0.3.1", "{\"ips\":[{\"version\":\"4\"}]}"),
	       "{\"ips\":[{\"version\":\"4\"}],\"cniVersion\":\"0.3.1\"}");
	expect(REQUEST("1.1.0", "{}"), "{\"cniVersion\":\"1.1.0\"}");
	expect(REQUEST("1.1.0", "{\"cniVersion\":null,\"a\":1}"),
	       "{\"a\":1,\"cniVersion\":\"1.1.0\"}");
	expect(REQUEST("1.1.0", "{\"cniversion\":\"\"}"),
	       "{\"cniVersion\":\"1.1.0\"}");
}

#define ADDRESSES_OLD                                                          \
	"\"ips\":[{\"address\":\"10.1.2.3/24\",\"version\":\"4\"},"            \
	"{\"address\":\"fd00::2/64\",\"version\":\"6\"}]"
#define ADDRESSES_NEW                                                          \
	"\"ips\":[{\"address\":\"10.1.2.3/24\"},{\"address\":\"fd00::2/64\"}]"

TH_TEST(another_version_is_converted)
{
	static const struct {
		const char *text;
		const char *want;
	} cases[] = {
		{REQUEST("1.0.0",
			 "{\"cniVersion\":\"0.4.0\"," ADDRESSES_OLD "}"),
		 "{" ADDRESSES_NEW ",\"cniVersion\":\"1.0.0\"}"},
		{REQUEST("0.3.0",
			 "{\"cniVersion\":\"1.1.0\"," ADDRESSES_NEW "}"),
		 "{" ADDRESSES_OLD ",\"cniVersion\":\"0.3.0\"}"},
		{REQUEST("0.4.0",
			 "{\"cniVersion\":\"0.3.1\"," ADDRESSES_OLD "}"),
		 "{" ADDRESSES_OLD ",\"cniVersion\":\"0.4.0\"}"},
		{REQUEST("1.1.0",
			 "{\"cniVersion\":\"1.0.0\"," ADDRESSES_NEW "}"),
		 "{" ADDRESSES_NEW ",\"cniVersion\":\"1.1.0\"}"},
		{REQUEST("1.0.0",
			 "{\"cniVersion\":\"1.1.0\",\"interfaces\":[{\"name\":"
			 "\"eth0\",\"mtu\":1500,\"socketPath\":\"/s\","
			 "\"pciID\":\"1\"}],\"routes\":[{\"dst\":\"0.0.0.0/0\","
			 "\"mtu\":1400}],\"x\":1}"),
		 "{\"interfaces\":[{\"name\":\"eth0\",\"mtu\":1500,"
		 "\"socketPath\":\"/s\",\"pciID\":\"1\"}],\"routes\":[{\"dst\":"
		 "\"0.0.0.0/0\",\"mtu\":1400}],\"x\":1,"
		 "\"cniVersion\":\"1.0.0\"}"},
		{REQUEST("0.4.0",
			 "{\"cniVersion\":\"1.1.0\",\"interfaces\":[{\"name\":"
			 "\"eth0\",\"mtu\":1500,\"SocketPath\":\"/s\","
			 "\"pciID\":\"1\",\"sandbox\":\"/n\"}],\"x\":"
			 "1234567890123456}"),
		 "{\"interfaces\":[{\"name\":\"eth0\",\"sandbox\":\"/n\"}],"
		 "\"x\":1234567890123456,\"cniVersion\":\"0.4.0\"}"},
		/* Values of a wrong type stay as they are. */
		{REQUEST("0.4.0", "{\"cniVersion\":\"1.0.0\",\"ips\":[5,null,"
				  "{\"address\":7}],\"interfaces\":null}"),
		 "{\"ips\":[5,null,{\"address\":7}],\"interfaces\":null,"
		 "\"cniVersion\":\"0.4.0\"}"},
		{REQUEST("0.4.0", "{\"cniVersion\":\"1.0.0\",\"ips\":\"x\"}"),
		 "{\"ips\":\"x\",\"cniVersion\":\"0.4.0\"}"},
		{REQUEST("0.4.0", "{\"cniVersion\":\"1.0.0\",\"IPS\":"
				  "[{\"Address\":\"::1\",\"VERSION\":\"4\"}]}"),
		 "{\"IPS\":[{\"Address\":\"::1\",\"version\":\"6\"}],"
		 "\"cniVersion\":\"0.4.0\"}"},
	};

	for (size_t i = 0; i < TH_LEN(cases); i++)
		expect(cases[i].text, cases[i].want);
}

TH_TEST(what_is_no_result_is_refused)
{
	static const struct {
		const char *text;
		int code;
		const char *word;
	} cases[] = {
		{"{\"cniVersion\":\"1.0.0\",\"name\":\"n\"}", CNI_BAD_CONFIG,
		 "must be called as chained plugin"},
		{REQUEST("1.0.0", "null"), CNI_BAD_CONFIG,
		 "must be called as chained plugin"},
		{REQUEST("1.0.0", "5"), CNI_BAD_CONFIG, "prevResult: 5"},
		{REQUEST("1.0.0", "[]"), CNI_BAD_CONFIG, "prevResult: []"},
		{REQUEST("1.0.0", "{\"cniVersion\":1}"), CNI_BAD_CONFIG,
		 "prevResult.cniVersion: 1"},
		{REQUEST("1.0.0", "{\"cniVersion\":\"0.2.0\"}"),
		 CNI_INCOMPATIBLE_VERSION, "'0.2.0'"},
		{REQUEST("1.0.0", "{\"cniVersion\":\"1.2.0\"}"),
		 CNI_INCOMPATIBLE_VERSION, "'1.2.0'"},
	};

	for (size_t i = 0; i < TH_LEN(cases); i++) {
		struct failure failure = {0};
		char *result = NULL;

		assert_int_equal(make(cases[i].text, &result, &failure),
				 cases[i].code);
		assert_null(result);
		says(&failure, cases[i].text, cases[i].word, "");
	}
}

TH_MAIN(NULL, NULL)
