/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/object-identity.h"

#include "tests/test.h"

static char set_name[] = "logd", set_uid[] = "0123", space[] = "kube-system", other[] = "other";
static char version[] = "apps/v1", kind[] = "DaemonSet";

/* Each part of the identity differs in turn: equality of the other parts must not outweigh the
 * difference. */
TEST(a_pod_belongs_to_a_daemonset_only_if_all_parts_of_the_identity_match)
{
        const ObjectIdentity set = { OBJECT_SOURCE_FILE, space, set_name, set_uid };

        for (ObjectSource source = 0; source < N_OBJECT_SOURCES; source++)
                for (unsigned wrong = 0; wrong < 128; wrong++) {
                        OwnerReference owner = {
                                .api_version = wrong & 1 ? other : version,
                                .kind = wrong & 2 ? other : kind,
                                .name = wrong & 4 ? other : set_name,
                                .uid = wrong & 8 ? other : set_uid,
                                .controller = !(wrong & 16),
                        };
                        const ObjectMeta pod = { .name = other,
                                                 .uid = other,
                                                 .namespace = wrong & 32 ? other : space,
                                                 .owner_references = { &owner, wrong & 64 ? 0 : 1 },
                                                 .source = source };

                        EXPECT_EQ(object_is_controlled_by_daemonset(&pod, &set),
                                  wrong == 0 && source == OBJECT_SOURCE_FILE);
                }
}

TEST(an_object_without_a_source_equals_no_other)
{
        const ObjectMeta metadata = { .name = set_name, .namespace = space, .uid = set_uid };
        ObjectIdentity a = object_identity(&metadata), b = a;

        EXPECT(!object_identities_equal(&a, &b));
        a.source = b.source = OBJECT_SOURCE_URL;
        EXPECT(object_identities_equal(&a, &b));
        b.source = OBJECT_SOURCE_APISERVER;
        EXPECT(!object_identities_equal(&a, &b));
}

TEST(objects_are_equal_only_if_all_parts_of_the_identity_match)
{
        const ObjectMeta one = {
                .name = set_name, .namespace = space, .uid = set_uid, .source = OBJECT_SOURCE_FILE
        };

        for (ObjectSource source = 0; source < N_OBJECT_SOURCES; source++)
                for (unsigned wrong = 0; wrong < 8; wrong++) {
                        const ObjectMeta two = { .name = wrong & 1 ? other : set_name,
                                                 .namespace = wrong & 2 ? other : space,
                                                 .uid = wrong & 4 ? other : set_uid,
                                                 .source = source };

                        EXPECT_EQ(objects_are_same(&one, &two),
                                  wrong == 0 && source == OBJECT_SOURCE_FILE);
                        EXPECT_EQ(objects_share_name(&one, &two), !(wrong & 3));
                        EXPECT_EQ(objects_share_namespace(&one, &two), !(wrong & 2));
                        EXPECT_EQ(objects_share_uid(&one, &two), !(wrong & 4));
                        EXPECT_EQ(object_compare_name(&one, two.namespace, two.name) == 0,
                                  !(wrong & 3));
                }
}

TEST(an_object_without_a_uid_shares_no_uid)
{
        const ObjectMeta none = { .name = set_name, .namespace = space };

        EXPECT(!object_has_uid(&none, NULL));
        EXPECT(!objects_share_uid(&none, &none));
}
