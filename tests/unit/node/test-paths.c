/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node/agent-paths.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "tests/test.h"

#include <sys/stat.h>

#define cleanup_paths cleanup_with(agent_paths_done)

static char root[] = "/";
static char group[] = "/pods";
static char configured[] = "/configured";

TEST(options_have_precedence_over_the_configuration)
{
        const AgentOptions options = { .config_path = "/c.yaml",
                                       .manifest_dir = "/given",
                                       .kubeconfig = "/kubeconfig" };
        const Config config = { .static_pod_path = configured,
                                .cgroup_root = group,
                                .mainstay = { .kubeconfig = configured,
                                              .bootstrap_kubeconfig = configured } };
        cleanup_paths AgentPaths paths = AGENT_PATHS_NULL;

        EXPECT_EQ(agent_paths_choose(&paths, &options, &config, NULL), 0);
        EXPECT_STREQ(paths.manifest_dir, "/given");
        EXPECT_STREQ(paths.kubeconfig, "/kubeconfig");
        EXPECT_STREQ(paths.bootstrap_kubeconfig, "/configured");
        EXPECT_STREQ(paths.shim_cgroup, "/pods/mainstay");
}

TEST(dropins_are_next_to_the_configuration_or_in_the_given_directory)
{
        static const struct {
                const char *file, *given, *directory;
        } cases[] = {
                { "/etc/mainstay/config.yaml", NULL, "/etc/mainstay/config.d" },
                { "/c.yaml", NULL, "/config.d" },
                { "c.yaml", NULL, "config.d" },
                { "a/c.yaml", NULL, "a/config.d" },
                { "/a/c.yaml", "/b/d//", "/b/d" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                const AgentOptions options = { .config_path = cases[i].file,
                                               .config_dir = cases[i].given };
                cleanup_paths AgentPaths paths = AGENT_PATHS_NULL;
                ConfigFiles files;

                EXPECT_EQ(agent_paths_choose_config(&paths, &options, &files), 0);
                EXPECT_STREQ(paths.config, cases[i].file);
                EXPECT_STREQ(files.directory, cases[i].directory);
                EXPECT(!files.needs_file && files.needs_directory == (cases[i].given != NULL));
        }
}

TEST(an_empty_configuration_has_the_usual_manifest_directory)
{
        const AgentOptions options = { .config_path = "/c.yaml" };
        const Config config = { .cgroup_root = root };
        cleanup_paths AgentPaths paths = AGENT_PATHS_NULL;

        EXPECT_EQ(agent_paths_choose(&paths, &options, &config, NULL), 0);
        EXPECT_STREQ(paths.manifest_dir, "/etc/kubernetes/manifests");
        EXPECT(!paths.kubeconfig);
        EXPECT_STREQ(paths.shim_cgroup, "/mainstay");
}

TEST(a_bootstrap_kubeconfig_needs_a_kubeconfig)
{
        const AgentOptions options = { .config_path = "/c.yaml", .bootstrap_kubeconfig = "/b" };
        const Config config = { .cgroup_root = root };
        cleanup_paths AgentPaths paths = AGENT_PATHS_NULL;
        cleanup_error Error error = ERROR_NULL;

        EXPECT_EQ(agent_paths_choose(&paths, &options, &config, &error), -EINVAL);
        EXPECT_STREQ(error.message,
                     "/b: a bootstrap kubeconfig needs the path of a kubeconfig to write");
}

TEST(directories_are_made_and_private_and_the_socket_is_in_the_run_directory)
{
        cleanup_paths AgentPaths paths = AGENT_PATHS_NULL;
        cleanup_free char *state = path_join(test_directory(), "state");
        cleanup_free char *run = path_join(test_directory(), "run");
        cleanup_free char *log = path_join(test_directory(), "log");
        cleanup_free char *socket = path_join(run, "mainstay.sock");
        struct stat st;

        EXPECT_EQ(agent_paths_make_directories(
                          &paths,
                          &(AgentOptions){ .state_dir = state, .run_dir = run, .log_dir = log },
                          NULL),
                  0);
        EXPECT_EQ(stat(paths.state_dir, &st), 0);
        EXPECT_EQ(st.st_mode & 07777, 0700);
        EXPECT_STREQ(paths.log_dir, log);
        EXPECT_STREQ(paths.socket, socket);
        EXPECT_EQ(agent_paths_lock(&paths, NULL), 0);
}
