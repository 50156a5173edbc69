/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Huge pages (hugepages-2Mi, hugepages-1Gi): the sizes that the node supports, and the limits of
 * pods and containers. As in the kubelet, a size that is not requested is limited to 0. */

#include "agent/bundle/cgroup-resources.h"
#include "agent/model/resource.h"

#include <jansson.h>

#define HUGE_PAGES_BIT(type) (1U << (type))

/* The directory in which the kernel lists the sizes. */
#define HUGE_PAGES_DIRECTORY "/sys/kernel/mm/hugepages"

/* The sizes that the kernel supports and cgroups can limit, as a mask of HUGE_PAGES_BIT(). */
unsigned huge_pages_limitable(const char *directory);

/* Whether the node has as many pages as the pod's containers may use. 0, or -ENOSPC with a message.
 */
int huge_pages_check(const PodSpec *spec, const char *directory, Error *reterr);

/* The values of the pod's cgroup, one for each size in 'mask'. Returns their number. */
size_t huge_pages_cgroup_values(const PodSpec *spec, int cgroup_version, unsigned mask,
                                CgroupValue ret[N_RESOURCE_TYPES]);

/* linux.resources.hugepageLimits of a container. NULL: nothing to limit. */
json_t *huge_pages_limits(const PodSpec *spec, const Container *container, unsigned mask);

/* The hugetlbfs options of an emptyDir that uses huge pages: "pagesize=2M". NULL: no container
 * requests such pages (manifest/ refuses such pods). */
const char *huge_pages_mount_option(const PodSpec *spec, Medium medium);
