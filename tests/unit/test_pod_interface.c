/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check how a pod's interface is found by its end on the node, with links that are
 * made up. The suite agent finds it on real ones. */
#include "cm.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../../tools/pods/interface.h"

static const char result[] =
	"{\"result\":{\"interfaces\":[{\"name\":\"veth1\"},"
	"{\"name\":\"eth0\",\"sandbox\":\"/run/netns/a\"}]}}";

/* What the library says of the other end of the pod's interface. */
static struct {
	int r;
	const char *host;
} told;

int __wrap_links_open(struct pod_net *ret, int netns_fd)
{
	return 0;
}

int __wrap_links_list(const struct pod_net *net, struct pod_links *ret)
{
	ret->len = 0;
	return 0;
}

uint32_t __wrap_links_other_end(const struct pod_net *net, const char *host,
				uint32_t *ret_host)
{
	return strcmp(host, "veth1") == 0 ? 5 : 0;
}

void __wrap_links_name(struct nl_sock *sock, uint32_t ifindex, char *ret)
{
	assert_int_equal(ifindex, 5);
	(void)snprintf(ret, IF_NAMESIZE, "net0");
}

int __wrap_natra_find_leftovers(struct natra *n,
				const struct natra_target *target,
				struct natra_leftovers *left)
{
	assert_string_equal(target->ifname, "net0");
	(void)snprintf(left->host_ifname, sizeof(left->host_ifname), "%s",
		       told.host);
	return told.r;
}

const char *__wrap_natra_error(const struct natra *n)
{
	return "made up";
}

TH_TEST(other_end_on_the_node_tells)
{
	static const struct {
		int r;
		const char *host;
		int wanted;
		const char *says;
	} rows[] = {
		{0, "veth1", 0, ""},
		{0, "veth2", -EBADE, "the other end of 'veth1'"},
		/* Not that there is none: by its looks another one might be found. */
		{-EIO, "", -EIO, "made up"},
	};
	struct cached cached = {.json = cJSON_Parse(result), .ifname = "eth0"};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pod_interface found = {.ifindex = 0};
		char why[INTERFACE_WHY_MAX] = "";

		told.r = rows[i].r;
		told.host = rows[i].host;
		assert_int_equal(
			interface_find(-1, &cached, NULL, -1, &found, why),
			rows[i].wanted);
		assert_ptr_equal(strstr(why, rows[i].says), why);
		assert_int_equal(found.ifindex, rows[i].wanted ? 0 : 5);
		assert_string_equal(found.ifname, rows[i].wanted ? "" : "net0");
	}
	cJSON_Delete(cached.json);
}

TH_MAIN(NULL, NULL)
