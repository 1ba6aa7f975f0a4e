/* SPDX-License-Identifier: BSD-2-Clause */
/* natra and interfaces of different link types. A tun device can be given any
 * link type. */
#include "one_pod.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_arp.h>
#include <linux/if_tun.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define TUN  "tun0"
#define SKIP 77

/* Creates the device in the pod. It disappears when the descriptor is
 * closed. */
static int open_tun(unsigned long arp_type)
{
	struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
	int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	int fd;

	(void)strcpy(request.ifr_name, TUN);
	assert_true(own >= 0);
	assert_int_equal(setns(pod.fd, CLONE_NEWNET), 0);
	fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(ioctl(fd, TUNSETIFF, &request), 0);
	assert_int_equal(ioctl(fd, TUNSETLINK, arp_type), 0);
	assert_int_equal(setns(own, CLONE_NEWNET), 0);
	(void)close(own);
	rig_sh("ip -n %s link set %s up", pod.name, TUN);
	return fd;
}

static int attach(void)
{
	struct natra_policy policy = policy_of(10, 10);
	struct natra_target target = pod_target(&pod, ID);

	target.ifname = TUN;
	return natra_attach(n, &target, &policy, NULL);
}

TH_TEST(type_that_is_neither_ethernet_nor_ip_is_refused)
{
	static const struct {
		unsigned long type;
		const char *name;
	} types[] = {
		{ARPHRD_INFINIBAND, "infiniband (32)"},
		{ARPHRD_IEEE802154, "(804)"},
		{ARPHRD_CAN, "(280)"},
		{ARPHRD_NETLINK, "(824)"},
		{ARPHRD_HDLC, "(513)"},
		{ARPHRD_VOID, "(65535)"},
	};

	for (size_t i = 0; i < TH_LEN(types); i++) {
		int fd = open_tun(types[i].type);
		char *before = rig_state();

		assert_int_equal(attach(), -EOPNOTSUPP);
		says(n, "'" TUN "' is of link type ", types[i].name);
		rig_same_state(before);
		free(before);
		(void)close(fd);
	}
	assert_int_equal(rig_pins(), 0);
}

TH_TEST(every_other_type_is_shaped)
{
	static const unsigned long types[] = {
		ARPHRD_ETHER, ARPHRD_LOOPBACK, ARPHRD_NONE,    ARPHRD_RAWIP,
		ARPHRD_PPP,   ARPHRD_TUNNEL,   ARPHRD_TUNNEL6, ARPHRD_SIT,
		ARPHRD_IPGRE, ARPHRD_IP6GRE,
	};
	struct natra_target target = pod_target(&pod, ID);

	for (size_t i = 0; i < TH_LEN(types); i++) {
		int fd = open_tun(types[i]);

		if (attach() < 0)
			fail_msg("type %lu: %s", types[i], natra_error(n));
		assert_int_equal(natra_detach(n, &target), 1);
		(void)close(fd);
	}
}

int main(void)
{
	rig_enter();
	if (access("/dev/net/tun", R_OK | W_OK) < 0) {
		puts("skip: no /dev/net/tun");
		return SKIP;
	}
	return th_run_each(one_pod_begin, one_pod_end);
}
