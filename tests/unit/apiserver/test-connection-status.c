/* SPDX-License-Identifier: Apache-2.0 */
/* The connection as the administrator sees it: which error is shown, and which responses count as a
 * refused permission. */

#include "agent/apiserver/connection-status.h"

#include "common/cleanup.h"
#include "tests/test.h"

typedef struct Fixture {
        KubeClientState state;
        unsigned n_changed, n_permissions_changed;
        ConnectionStatus *connection;
} Fixture;

static KubeClientState get_state(void *userdata) {
        return ((Fixture *) userdata)->state;
}

static void count_change(void *userdata) {
        ((Fixture *) userdata)->n_changed++;
}

static void count_permission_change(void *userdata) {
        ((Fixture *) userdata)->n_permissions_changed++;
}

static void set_up(Fixture *f) {
        *f = (Fixture){ .state = { .server = "https://192.0.2.1:6443", .is_reached = true } };
        REQUIRE(connection_status_new(
                        &(ConnectionStatusSpec){ .get_client_state = get_state,
                                                 .on_changed = count_change,
                                                 .on_permissions_changed = count_permission_change,
                                                 .userdata = f },
                        &f->connection) == 0);
}

static void tear_down(Fixture *f) {
        f->connection = connection_status_free(f->connection);
}

TEST(refused_permissions_are_listed_until_they_are_granted)
{
        cleanup_with(tear_down) Fixture f = { 0 };
        cleanup_free char *refused = NULL, *one = NULL;

        set_up(&f);
        connection_status_set_permission(f.connection, PERMISSION_PODS, "403 Forbidden", 403);
        connection_status_set_permission(f.connection, PERMISSION_LEASE, "401 Unauthorized", 401);
        refused = connection_status_print_refused(f.connection);
        EXPECT_STREQ(refused, "the Lease: 401 Unauthorized; pods: 403 Forbidden");
        EXPECT_EQ(f.n_permissions_changed, 2);
        connection_status_set_permission(f.connection, PERMISSION_LEASE, NULL, 0);
        one = connection_status_print_refused(f.connection);
        EXPECT_STREQ(one, "pods: 403 Forbidden");
        EXPECT_STREQ(connection_status_last_error(f.connection), "403 Forbidden");
        connection_status_set_permission(f.connection, PERMISSION_PODS, NULL, 0);
        EXPECT(!connection_status_print_refused(f.connection));
        EXPECT(!connection_status_last_error(f.connection));
}

TEST(same_refusal_is_reported_once)
{
        cleanup_with(tear_down) Fixture f = { 0 };

        set_up(&f);
        for (int i = 0; i < 3; i++)
                connection_status_set_permission(f.connection, PERMISSION_NODE, "403", 403);
        EXPECT_EQ(f.n_permissions_changed, 1);
        EXPECT_EQ(f.n_changed, 1);
}

TEST(errors_that_do_not_concern_permissions_change_none)
{
        static const unsigned statuses[] = { 0, 404, 408, 409, 410, 429, 500, 503 };
        cleanup_with(tear_down) Fixture f = { 0 };
        cleanup_free char *refused = NULL;

        set_up(&f);
        for (size_t i = 0; i < N_ELEMENTS(statuses); i++)
                connection_status_set_permission(f.connection, PERMISSION_PODS, "x", statuses[i]);
        EXPECT_EQ(f.n_permissions_changed, 0);
        connection_status_set_permission(f.connection, PERMISSION_PODS, "403", 403);
        connection_status_set_permission(f.connection, PERMISSION_PODS, "no response", 0);
        refused = connection_status_print_refused(f.connection);
        EXPECT_STREQ(refused, "pods: 403");
}

TEST(error_without_a_response_means_unreachable)
{
        cleanup_with(tear_down) Fixture f = { 0 };

        set_up(&f);
        f.state.is_reached = false;
        EXPECT(connection_status_is_unreachable(f.connection, "connection refused", 0));
        EXPECT(!connection_status_is_unreachable(f.connection, "403 Forbidden", 403));
        EXPECT(!connection_status_is_unreachable(f.connection, NULL, 0));
        f.state.is_reached = true;
        EXPECT(!connection_status_is_unreachable(f.connection, "timed out", 0));
}

TEST(last_error_follows_the_precedence_of_errors)
{
        cleanup_with(tear_down) Fixture f = { 0 };

        set_up(&f);
        connection_status_set_permission(f.connection, PERMISSION_NODE, "refused", 403);
        EXPECT_STREQ(connection_status_last_error(f.connection), "refused");
        connection_status_set_error(f.connection, CONNECTION_CERTIFICATE_ERROR, "expired");
        EXPECT_STREQ(connection_status_last_error(f.connection), "expired");
        f.state.credentials_error = "no token";
        EXPECT_STREQ(connection_status_last_error(f.connection), "no token");
        connection_status_set_error(f.connection, CONNECTION_POD_WATCH_ERROR, "watch failed");
        EXPECT_STREQ(connection_status_last_error(f.connection), "watch failed");
        f.state.is_reached = false;
        f.state.last_error = "unreachable";
        EXPECT_STREQ(connection_status_last_error(f.connection), "unreachable");
        connection_status_set_error(f.connection, CONNECTION_KUBECONFIG_ERROR, "no kubeconfig");
        EXPECT_STREQ(connection_status_last_error(f.connection), "no kubeconfig");
}

TEST(status_without_a_kubeconfig_shows_only_its_error_or_that_of_the_certificate)
{
        cleanup_with(tear_down) Fixture f = { 0 };

        set_up(&f);
        f.state = (KubeClientState){ 0 };
        EXPECT(!connection_status_last_error(f.connection));
        connection_status_set_error(f.connection, CONNECTION_CERTIFICATE_ERROR, "expired");
        EXPECT_STREQ(connection_status_last_error(f.connection), "expired");
}

TEST(error_has_changed_only_if_the_text_differs)
{
        cleanup_with(tear_down) Fixture f = { 0 };

        set_up(&f);
        EXPECT(connection_status_set_error(f.connection, CONNECTION_KUBECONFIG_ERROR, "a"));
        EXPECT(!connection_status_set_error(f.connection, CONNECTION_KUBECONFIG_ERROR, "a"));
        EXPECT(connection_status_set_error(f.connection, CONNECTION_KUBECONFIG_ERROR, NULL));
        EXPECT_EQ(f.n_changed, 2);
}

TEST(describe_shows_the_last_error_of_a_server_that_is_reached_again)
{
        cleanup_with(tear_down) Fixture f = { 0 };
        NodeApiServerConnection connection;

        set_up(&f);
        f.state.last_unreachable_error = "was away";
        f.state.since = 7;
        connection_status_describe(f.connection, &connection);
        EXPECT(connection.has_joined && connection.is_reached);
        EXPECT_STREQ(connection.server, "https://192.0.2.1:6443");
        EXPECT_STREQ(connection.last_error, "was away");
        EXPECT_EQ(connection.since, 7);
}
