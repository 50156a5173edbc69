/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/object-identity.h"

#include "tests/test.h"

static char set_name[] = "logd", set_uid[] = "0123", space[] = "kube-system", other[] = "other";
static char version[] = "apps/v1", kind[] = "DaemonSet";

/* Each part in turn is another one: none of the rest makes up for it. */
TEST(a_pod_is_a_daemonsets_by_all_parts_of_the_identity)
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

TEST(nothing_is_known_of_an_object_without_a_source)
{
        const ObjectMeta metadata = { .name = set_name, .namespace = space, .uid = set_uid };
        ObjectIdentity a = object_identity(&metadata), b = a;

        EXPECT(!object_identities_equal(&a, &b));
        a.source = b.source = OBJECT_SOURCE_URL;
        EXPECT(object_identities_equal(&a, &b));
        b.source = OBJECT_SOURCE_APISERVER;
        EXPECT(!object_identities_equal(&a, &b));
}
