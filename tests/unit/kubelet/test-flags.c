/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kubelet/flags.h"
#include "common/cleanup.h"
#include "tests/test.h"

static char *join_words(char *const *words) {
        char *text = strdup("");

        strv_foreach(word, (char **) (uintptr_t) words) {
                char *longer = NULL;

                if (text && asprintf(&longer, "%s%s%s", text, text[0] ? " " : "", *word) < 0)
                        longer = NULL;
                free(text);
                text = longer;
        }
        return text;
}

TEST(kubelet_flags_become_options_of_mainstayd)
{
        static const struct {
                const char *arguments[8], *options, *without_effect;
        } cases[] = {
                { { NULL }, "--cert-dir=/var/lib/kubelet/pki", "" },
                { { "--config=/a", "--kubeconfig", "/b", "--config-dir", "/d", NULL },
                  "--config=/a --kubeconfig=/b --config-dir=/d --cert-dir=/var/lib/kubelet/pki",
                  "" },
                { { "--hostname-override=Web", "--pod-manifest-path=/m", "--cert-dir=/c", NULL },
                  "--node-name=Web --manifest-dir=/m --cert-dir=/c",
                  "" },
                { { "--bootstrap-kubeconfig=", "--node-ip", "10.0.0.1", "--cert-dir", "/c", NULL },
                  "--node-ip=10.0.0.1 --cert-dir=/c",
                  "" },
                { { "--node-labels=a=b,c=d", "--register-with-taints=x=y:NoSchedule",
                    "--cert-dir=/c", NULL },
                  "--node-labels=a=b,c=d --register-with-taints=x=y:NoSchedule --cert-dir=/c",
                  "" },
                { { "--root-dir", "/r", "--fail-swap-on=false", "--cert-dir=/c", "-z", NULL },
                  "--kubelet-dir=/r --cert-dir=/c",
                  "--fail-swap-on -z" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                KubeletFlags flags = { 0 };
                cleanup_free char *options = NULL, *without_effect = NULL;

                EXPECT_EQ(
                        kubelet_flags_read((char *const *) (uintptr_t) cases[i].arguments, &flags),
                        0);
                options = join_words(flags.options);
                without_effect = join_words(flags.without_effect);
                EXPECT_STREQ(options, cases[i].options);
                EXPECT_STREQ(without_effect, cases[i].without_effect);
                EXPECT(!flags.stray && !flags.prints_version && !flags.prints_help);
                kubelet_flags_done(&flags);
        }
}

TEST(verbosity_of_four_enables_debug_messages)
{
        static const struct {
                const char *arguments[3];
                bool is_verbose;
        } cases[] = {
                { { "-v=2", NULL }, false },     { { "-v", "4", NULL }, true },
                { { "-v5", NULL }, true },       { { "--v=10", NULL }, true },
                { { "--v", "0", NULL }, false }, { { "-v", NULL }, false },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                KubeletFlags flags = { 0 };

                EXPECT_EQ(
                        kubelet_flags_read((char *const *) (uintptr_t) cases[i].arguments, &flags),
                        0);
                EXPECT_EQ(flags.is_verbose, cases[i].is_verbose);
                EXPECT(flags.without_effect == NULL);
                kubelet_flags_done(&flags);
        }
}

TEST(version_help_and_stray_words_are_distinguished)
{
        static const struct {
                const char *arguments[2];
                bool prints_version, prints_help;
                const char *stray;
        } cases[] = {
                { { "--version", NULL }, true, false, "" },
                { { "--version=raw", NULL }, true, false, "" },
                { { "-h", NULL }, false, true, "" },
                { { "--help", NULL }, false, true, "" },
                { { "run", NULL }, false, false, "run" },
                { { "-", NULL }, false, false, "-" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                KubeletFlags flags = { 0 };

                EXPECT_EQ(
                        kubelet_flags_read((char *const *) (uintptr_t) cases[i].arguments, &flags),
                        0);
                EXPECT_EQ(flags.prints_version, cases[i].prints_version);
                EXPECT_EQ(flags.prints_help, cases[i].prints_help);
                EXPECT_STREQ(strna(flags.stray), cases[i].stray);
                kubelet_flags_done(&flags);
        }
}
