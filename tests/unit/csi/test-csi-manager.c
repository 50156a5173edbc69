/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/csi/csi-files.h"
#include "agent/csi/csi-manager.h"
#include "common/cleanup.h"
#include "common/text.h"
#include "tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static void ignore_pod(const char *uid, void *userdata) {
}

static void ignore_drivers(void *userdata) {
}

static CsiManager *new_manager(sd_event **ret_event, const char *directory) {
        CsiManager *manager = NULL;

        REQUIRE(sd_event_new(ret_event) >= 0);
        REQUIRE(csi_manager_new(&(CsiManagerConfig){ .event = *ret_event,
                                                     .kubelet_dir = directory,
                                                     .node_name = "n",
                                                     .on_pod_changed = ignore_pod,
                                                     .on_drivers_changed = ignore_drivers },
                                &manager) >= 0);
        return manager;
}

static bool is_accepted(const CsiManager *manager, const char *name, const char *version) {
        char *versions[] = { (char *) (uintptr_t) version, NULL };

        return csi_manager_check_driver(manager, name, "/e", version ? versions : NULL, NULL) >= 0;
}

TEST(driver_needs_a_name_and_a_version_of_1)
{
        char *versions[] = { (char *) (uintptr_t) "1.2.3", NULL };
        sd_event *event;
        CsiManager *manager = new_manager(&event, "/nowhere");

        EXPECT(is_accepted(manager, "a.example.com", "1.0"));
        EXPECT(is_accepted(manager, "a", "v1.9.12"));
        EXPECT(!is_accepted(manager, "a", "0.3.0"));
        EXPECT(!is_accepted(manager, "a", "2.0.1"));
        EXPECT(!is_accepted(manager, "a", "1"));
        EXPECT(!is_accepted(manager, "a", "1.x"));
        EXPECT(!is_accepted(manager, "a", NULL));
        EXPECT(!is_accepted(manager, "..", "1.0.0"));
        EXPECT(!is_accepted(manager, "a/b", "1.0.0"));
        EXPECT(!is_accepted(manager, "", "1.0.0"));
        REQUIRE(csi_manager_register(manager, "a", "/e", versions, &(CsiNodeAnswer){ 0 }) >= 0);
        EXPECT(!is_accepted(manager, "a", "1.2.3"));
        EXPECT(is_accepted(manager, "a", "1.2.4"));
        EXPECT_EQ(csi_manager_drivers(manager)->n, 1);
        csi_manager_unregister(manager, "a");
        EXPECT_EQ(csi_manager_drivers(manager)->n, 0);
        csi_manager_free(manager);
        sd_event_unref(event);
}

/* The API server refuses a CSINode with a larger number, and thus all volumes of the driver. */
TEST(limit_of_volumes_is_one_that_a_csinode_can_have)
{
        static const struct {
                int64_t reported, expected;
        } rows[] = {
                { 0, 0 },
                { 39, 39 },
                { INT32_MAX, INT32_MAX },
                { INT64_C(1) + INT32_MAX, INT32_MAX },
                { INT64_MAX, INT32_MAX },
        };
        char *versions[] = { (char *) (uintptr_t) "1.2.3", NULL };

        for (size_t i = 0; i < N_ELEMENTS(rows); i++) {
                const CsiNodeAnswer answer = { .max_volumes = rows[i].reported };
                sd_event *event;
                CsiManager *manager = new_manager(&event, "/nowhere");

                REQUIRE(csi_manager_register(manager, "a", "/e", versions, &answer) >= 0);
                EXPECT_EQ(csi_manager_drivers(manager)->items[0].max_volumes, rows[i].expected);
                csi_manager_free(manager);
                sd_event_unref(event);
        }
}

TEST(attachment_names_match_the_kubelet)
{
        char name[CSI_NAME_SIZE];

        csi_attachment_name("h", "d", "n", name);
        EXPECT_STREQ(name, "csi-9072ed11cc1acb5fa433a877ff339b6311d013f33bddd1d0092711a8ace5b16d");
        EXPECT_EQ(strlen(name), (size_t) CSI_NAME_SIZE - 1);
}

static unsigned n_found;

static int count_found(const char *pod_uid, const CsiVolumeData *data, void *userdata) {
        EXPECT_STREQ(data->handle, "h");
        n_found += pod_uid ? 1 : 100;
        return 0;
}

TEST(volumes_on_the_disk_are_found_and_removed)
{
        const CsiVolumeData staged = { .driver = (char *) (uintptr_t) "d",
                                       .handle = (char *) (uintptr_t) "h" };
        CsiVolumeData published = staged;
        cleanup_free char *stage = csi_stage_dir("d", "h"), *publish = csi_publish_dir("u", "v"),
                          *other = csi_publish_dir("u", "w");
        cleanup_close int fd = -EBADF;

        published.name = (char *) (uintptr_t) "v";
        REQUIRE(stage && publish && other);
        fd = open(test_directory(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        REQUIRE(csi_files_write(fd, stage, CSI_STAGE_NAME, &staged) >= 0);
        REQUIRE(csi_files_write(fd, publish, NULL, &published) >= 0);
        REQUIRE(csi_files_write(fd, other, NULL, &published) >= 0); /* under another name */
        n_found = 0;
        EXPECT(csi_files_find(fd, count_found, NULL) >= 0);
        EXPECT_EQ(n_found, 101);
        EXPECT(csi_files_remove(fd, stage, CSI_STAGE_NAME) >= 0);
        EXPECT(csi_files_remove(fd, publish, CSI_MOUNT_NAME) >= 0);
        EXPECT(csi_files_remove(fd, other, CSI_MOUNT_NAME) >= 0);
        EXPECT(csi_files_remove(fd, other, CSI_MOUNT_NAME) >= 0);
        EXPECT(faccessat(fd, "pods/u", F_OK, 0) < 0);
}

TEST(directory_whose_data_was_not_written_is_removed)
{
        const CsiVolumeData staged = { .driver = (char *) (uintptr_t) "d",
                                       .handle = (char *) (uintptr_t) "h" };
        cleanup_free char *stage = csi_stage_dir("d", "h");
        cleanup_close int fd = open(test_directory(), O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                          directory = -EBADF;

        REQUIRE(stage && csi_files_write(fd, stage, CSI_STAGE_NAME, &staged) >= 0);
        directory = openat(fd, stage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        REQUIRE(renameat(directory, "vol_data.json", directory, "vol_data.json.tmp") >= 0);
        n_found = 0;
        EXPECT(csi_files_find(fd, count_found, NULL) >= 0);
        EXPECT_EQ(n_found, 0);
        EXPECT(faccessat(fd, stage, F_OK, 0) < 0);
}

TEST(leftovers_of_a_block_device_are_removed_after_a_death)
{
        static const char *const leftovers[] = {
                "plugins/kubernetes.io/csi/volumeDevices/publish/v",
                "plugins/kubernetes.io/csi/volumeDevices/staging/v",
                "pods/u/volumeDevices/kubernetes.io~csi/v",
        };
        const CsiVolumeData data = { .driver = (char *) (uintptr_t) "d",
                                     .handle = (char *) (uintptr_t) "h",
                                     .name = (char *) (uintptr_t) "v" };
        const char *volume = "plugins/kubernetes.io/csi/volumeDevices/v/data";
        cleanup_close int fd = open(test_directory(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        /* The data are written first. Without a link, the directory of a device does not belong to
         * a pod. */
        for (unsigned n_made = 0; n_made < 4; n_made++) {
                cleanup_close int directory = -EBADF;

                REQUIRE(csi_files_write_block(fd, test_directory(), "u", &data) >= 0);
                REQUIRE(unlinkat(fd, leftovers[2], 0) >= 0);
                if (n_made < 3)
                        REQUIRE(unlinkat(fd, leftovers[0], AT_REMOVEDIR) >= 0);
                directory = openat(fd, volume, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                if (n_made < 2)
                        REQUIRE(renameat(directory, "vol_data.json", directory,
                                         "vol_data.json.tmp") >= 0);
                if (n_made < 1)
                        REQUIRE(unlinkat(directory, "vol_data.json.tmp", 0) >= 0);
                n_found = 0;
                EXPECT(csi_files_find(fd, count_found, NULL) >= 0);
                EXPECT_EQ(n_found, 0);
                EXPECT(faccessat(fd, volume, F_OK, 0) < 0);
                EXPECT(faccessat(fd, leftovers[0], F_OK, 0) < 0);
                EXPECT(faccessat(fd, "pods/u", F_OK, 0) < 0);
        }
        /* A directory that is staged, or belongs to a pod, stays. */
        REQUIRE(csi_files_write_block(fd, test_directory(), NULL, &data) >= 0);
        REQUIRE(csi_files_write_block(fd, test_directory(), "u", &data) >= 0);
        n_found = 0;
        EXPECT(csi_files_find(fd, count_found, NULL) >= 0);
        EXPECT_EQ(n_found, 101);
        REQUIRE(unlinkat(fd, leftovers[1], AT_REMOVEDIR) >= 0);
        REQUIRE(unlinkat(fd, leftovers[0], AT_REMOVEDIR) >= 0);
        n_found = 0;
        EXPECT(csi_files_find(fd, count_found, NULL) >= 0);
        EXPECT_EQ(n_found, 1);
        EXPECT(csi_files_remove_block(fd, "u", "v") >= 0);
        EXPECT(faccessat(fd, volume, F_OK, 0) < 0);
}

/* ---- labels ---- */

typedef struct Calls {
        char *methods; /* "NodeStageVolume a, …": each call with the label in its request */
        int64_t last;
} Calls;

static bool has_label(const Buffer *request, const char *option) {
        return request->data && memmem(request->data, request->length, option, strlen(option));
}

static int record_call(const CsiCallSpec *call, void *userdata) {
        Calls *calls = userdata;

        calls->last = call->call;
        if (streq(call->method, "NodeGetCapabilities"))
                return 0;
        return text_appendf(&calls->methods, "%s%s%s ", call->method,
                            has_label(call->request, "context=\"a\"") ? " a" : "",
                            has_label(call->request, "context=\"b\"") ? " b" : "");
}

/* The driver stages, and succeeds. */
static void answer_calls(CsiManager *manager, Calls *calls) {
        int64_t stages = CSI_STAGE_UNSTAGE_VOLUME;

        while (calls->last > 0) {
                int64_t call = calls->last;

                calls->last = 0;
                csi_manager_answer(manager, call, 0, NULL,
                                   &(CsiNodeAnswer){ .capabilities = { &stages, 1 } });
        }
}

static int mount_for(CsiManager *manager, const char *uid, const char *label) {
        CsiVolume volume = { .name = "v",
                             .driver = "d",
                             .handle = (char *) (uintptr_t) "h",
                             .is_of_one_pod = true,
                             .selinux_label = (char *) (uintptr_t) label };
        Pod pod = { .metadata.uid = (char *) (uintptr_t) uid };

        return csi_manager_mount(manager, &pod, &volume, NULL);
}

TEST(volume_is_staged_again_for_a_pod_with_another_label)
{
        char *versions[] = { (char *) (uintptr_t) "1.0.0", NULL };
        Calls calls = { .last = 0 };
        sd_event *event;
        CsiManager *manager = new_manager(&event, test_directory());

        REQUIRE(csi_manager_register(manager, "d", "/e", versions, &(CsiNodeAnswer){ 0 }) >= 0);
        csi_manager_set_caller(manager, record_call, &calls);
        EXPECT_EQ(mount_for(manager, "one", "a"), -EAGAIN);
        answer_calls(manager, &calls);
        EXPECT_EQ(mount_for(manager, "one", "a"), 0);
        EXPECT_EQ(mount_for(manager, "two", "b"), -EIO); /* only one pod may use it */
        while (!csi_manager_unmount_pod(manager, "one")) {
                REQUIRE(sd_event_run(event, 1000000) >= 0);
                answer_calls(manager, &calls);
        }
        EXPECT_EQ(mount_for(manager, "two", "b"), -EAGAIN);
        answer_calls(manager, &calls);
        EXPECT_EQ(mount_for(manager, "two", "b"), 0);
        EXPECT_STREQ(calls.methods,
                     "NodeStageVolume a NodePublishVolume a NodeUnpublishVolume NodeUnstageVolume "
                     "NodeStageVolume b NodePublishVolume b ");
        free(calls.methods);
        csi_manager_free(manager);
        sd_event_unref(event);
}
