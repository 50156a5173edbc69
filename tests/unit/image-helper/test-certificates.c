/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/registry/endpoint.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/json-text.h"
#include "tests/failing-readdir.h"
#include "tests/test.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

static Endpoint make_endpoint(void) {
        static char host[] = "registry.example.com";

        return (Endpoint){
                .host = host,
                .display = host,
                .authorities_fd = -EBADF,
                .certificate_fd = -EBADF,
                .key_fd = -EBADF,
        };
}

static int load_test_certificates(Endpoint *endpoint) {
        cleanup_json json_t *directories = json_pack("[s]", test_directory());

        REQUIRE(directories);
        *endpoint = make_endpoint();
        return endpoint_load_certificates(directories, endpoint, NULL);
}

static void close_endpoint_files(const Endpoint *endpoint) {
        close_fd(endpoint->authorities_fd);
        close_fd(endpoint->certificate_fd);
        close_fd(endpoint->key_fd);
}

static void put_authority(void) {
        cleanup_free char *path = path_join(test_directory(), "registry.example.com");
        cleanup_close int fd = open_directory_at(AT_FDCWD, path, 0700);

        REQUIRE(fd >= 0 && write_file_atomic_at(fd, "ca.crt", "x", 1, 0600) == 0);
}

TEST(the_authorities_of_a_host_are_read)
{
        Endpoint endpoint;

        EXPECT_EQ(load_test_certificates(&endpoint), 0);
        EXPECT(endpoint.authorities_fd < 0);
        put_authority();
        EXPECT_EQ(load_test_certificates(&endpoint), 0);
        EXPECT(endpoint.authorities_fd >= 0);
        close_endpoint_files(&endpoint);
}

TEST(certificates_that_cannot_be_listed_are_an_error)
{
        Endpoint endpoint;

        put_authority();
        readdir_calls_left = 0;
        EXPECT_EQ(load_test_certificates(&endpoint), -EIO);
        readdir_calls_left = -1;
        close_endpoint_files(&endpoint);
}

TEST(a_directory_of_certificates_that_cannot_be_opened_now_is_an_error)
{
        struct rlimit limit;
        Endpoint endpoint;
        int r;

        put_authority();
        REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
        REQUIRE(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 0, limit.rlim_max }) == 0);
        r = load_test_certificates(&endpoint);
        REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
        EXPECT_EQ(r, -EMFILE);
        close_endpoint_files(&endpoint);
}
