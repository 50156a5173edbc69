/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/probe/probe-threshold.h"

#include "tests/test.h"

/* Results as '+' and '-', verdicts as 'P', 'F' and '.'. */
static void expect_verdicts(int64_t success, int64_t failure, const char *results,
                            const char *verdicts) {
        const Probe spec = { .success_threshold = { true, success },
                             .failure_threshold = { true, failure } };
        static const char letters[] = { '.', 'P', 'F' };
        ProbeResultRun run = { 0 };
        char got[64] = "";

        for (size_t i = 0; results[i]; i++)
                got[i] = letters[probe_apply_threshold(&run, &spec, results[i] == '+')];
        EXPECT_STREQ(got, verdicts);
}

TEST(equal_results_up_to_the_threshold_give_a_verdict)
{
        expect_verdicts(1, 3, "+--+---+", "P..P..FP");
        expect_verdicts(1, 1, "+-+-", "PFPF");
        expect_verdicts(3, 1, "++-+++", "..F..P");
}

TEST(a_verdict_is_repeated_while_it_holds)
{ expect_verdicts(2, 2, "----++++", ".FFF.PPP"); }

TEST(each_probe_kind_is_found_in_the_container)
{
        Probe startup = { 0 }, liveness = { 0 }, readiness = { 0 };
        const Container container = { .startup_probe = &startup,
                                      .liveness_probe = &liveness,
                                      .readiness_probe = &readiness };

        EXPECT(container_probe(&container, PROBE_STARTUP) == &startup);
        EXPECT(container_probe(&container, PROBE_LIVENESS) == &liveness);
        EXPECT(container_probe(&container, PROBE_READINESS) == &readiness);
        for (size_t i = 0; i < N_PROBE_KINDS; i++)
                EXPECT(probe_kind_names[i] && probe_kind_titles[i]);
}
