/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/component/cli-run.h"

#include "common/text.h"

/* The commands of images against a fake agent. */

/* The pull of another image whose name contains the requested one is newer. */
static char *list_pulls(void) {
        return strdup("{\"pulls\":["
                      "{\"reference\":\"docker.io/library/app:10\",\"isEnded\":true,"
                      "\"error\":\"another image\"},"
                      "{\"reference\":\"docker.io/library/app:1\",\"isEnded\":true,"
                      "\"digest\":\"sha256:1\"}]}");
}

TEST(pull_reports_the_image_with_any_spelling_of_its_name)
{
        static const char *const spellings[] = { "app:1", "library/app:1", "docker.io/app:1",
                                                 "docker.io/library/app:1" };

        start_http_server();
        fake_agent.images = list_pulls;
        for (size_t i = 0; i < N_ELEMENTS(spellings); i++) {
                cleanup_free char *arguments = text_format("images pull %s", spellings[i]);

                expect_run(arguments, 0, "sha256:1\n", "");
                EXPECT_STREQ(fake_agent.pulled, "docker.io/library/app:1");
        }
        stop_http_server();
}
