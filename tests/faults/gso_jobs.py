# SPDX-License-Identifier: BSD-2-Clause
"""The jobs in which the size of GSO packets changes, see src/attach/gso.h."""
from jobs import ID, Bad, Detach, Killed, Set

# At the first rate the pod's interface has small GSO packets, with fq or without.
SLOW = ("--ingress-rate", "10M", "--egress-rate", "100k")
FAST = ("--ingress-rate", "30M", "--egress-rate", "1G")


class SetGso(Set):
    """Sets a rate at which GSO packets may have their full size again. That is no limit, so a
    set is a success without it; the next one has to mend it."""

    name = "set gso"
    limits = SLOW
    policy = (10**7, 10**5, "off")
    new_policy = (3 * 10**7, 10**9, "off")

    def args(self):
        return ("set", ID, *FAST)

    def restore(self):
        self.b.natractl(*self.args())
        self.b.must_be(dict(self.before, gso_max_segs=self.b.clean["gso_max_segs"]))
        self.b.natractl("set", ID, *SLOW)
        self.b.must_be(self.before)


class DetachGso(Detach):
    """Gives the pod back its GSO packets, which nobody could do after a success."""

    name = "detach gso"
    limits = SLOW
    policy = (10**7, 10**5, "off")


class KilledSetGso(Killed, SetGso):
    """gc and the same call both end what was begun, and a detach leaves none of it."""

    name = "kill set gso"

    def killed(self, run, kill_again):
        for mend in (("gc",), self.args()):
            self.old += run.made
            self.b.natractl(*mend)
            self.b.must_be_shaped(self.policy, self.new_policy)
            is_new = self.b.policy() == list(self.new_policy)
            wanted = self.b.clean if is_new else self.before
            if self.b.segs() != wanted["gso_max_segs"]:
                raise Bad(f"after {mend[0]}: gso_max_segs {self.b.segs()}")
            self.forget()
            run = kill_again()
        self.old += run.made
        self.forget()
