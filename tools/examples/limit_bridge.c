/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits every veth of a bridge, in both directions. Run it again when veths come and go:
 * those that have left the bridge lose their limit, and the others keep their counters. These
 * are the host's ends: their ingress is what the other ends send.
 *
 * usage: limit_bridge BRIDGE RATE    such as: limit_bridge br0 10M
 *        limit_bridge BRIDGE none    removes the limits
 */
#include <dirent.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <natra/natra.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define PORTS_MAX 1024

static char ids[PORTS_MAX][NATRA_ID_MAX + 1];
static const char *keep[PORTS_MAX];
static size_t keep_len;

static bool is_veth(const char *port)
{
	struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
	struct ifreq request = {.ifr_data = (char *)&info};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool is;

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%.15s", port);
	is = ioctl(fd, SIOCETHTOOL, &request) == 0 &&
	     strcmp(info.driver, "veth") == 0;
	close(fd);
	return is;
}

static int limit(struct natra *n, const char *network, const char *port,
		 const struct natra_policy *policy)
{
	struct natra_target target = NATRA_INIT(target);

	if (keep_len == PORTS_MAX || !is_veth(port))
		return 0;
	snprintf(ids[keep_len], sizeof(ids[0]), "%s:%.15s", network, port);
	target.id = ids[keep_len];
	target.ifname = port;
	target.network = network;
	keep[keep_len] = ids[keep_len];
	keep_len++;
	return natra_attach(n, &target, policy, NULL);
}

int main(int argc, char **argv)
{
	struct natra_policy policy = NATRA_INIT(policy);
	char network[64], path[128];
	struct natra *n = NULL;
	struct dirent *port;
	int r;
	DIR *ports;

	if (argc != 3 ||
	    (strcmp(argv[2], "none") != 0 &&
	     natra_parse_rate(argv[2], &policy.ingress_rate_bits_per_sec) < 0))
		return fputs("usage: limit_bridge BRIDGE RATE|none\n", stderr),
		       2;
	policy.egress_rate_bits_per_sec = policy.ingress_rate_bits_per_sec;
	snprintf(network, sizeof(network), "bridge-%.40s", argv[1]);
	snprintf(path, sizeof(path), "/sys/class/net/%.40s/brif", argv[1]);
	ports = opendir(path);
	if (!ports)
		return fprintf(stderr, "%s: is no bridge\n", argv[1]), 1;
	r = natra_open(&n, NULL);
	while (r == 0 && policy.ingress_rate_bits_per_sec &&
	       (port = readdir(ports)))
		r = port->d_name[0] == '.'
			    ? 0
			    : limit(n, network, port->d_name, &policy);
	if (r == 0)
		r = natra_gc(n, network, keep, keep_len, NULL);
	if (r < 0)
		fprintf(stderr, "%s\n", n ? natra_error(n) : strerror(-r));
	natra_close(n);
	closedir(ports);
	return r < 0;
}
