/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Huge pages: which a node has, and what pods and containers may use of them. Every size that is
 * not asked for is limited to nothing, as the kubelet does. */

#include "agent/bundle/resources.h"
#include "agent/model/resource.h"

#include <jansson.h>

#define HUGE_PAGES_BIT(type) (1U << (type))

/* Where the kernel tells of its sizes. */
#define HUGE_PAGES_DIRECTORY "/sys/kernel/mm/hugepages"

/* The sizes that this kernel has and control groups can limit, as a mask of HUGE_PAGES_BIT(). */
unsigned huge_pages_limitable(const char *directory);

/* Whether the node has as many pages as the pod's containers may use. 0, or -ENOSPC with the
 * sentence. */
int huge_pages_check(const PodSpec *spec, const char *directory, Error *reterr);

/* What the pod's group gets, one value for each size in 'mask'. Gives how many. */
size_t huge_pages_cgroup_values(const PodSpec *spec, int cgroup_version, unsigned mask,
                                CgroupValue ret[N_RESOURCE_TYPES]);

/* linux.resources.hugepageLimits of a container. NULL where there is nothing to limit. */
json_t *huge_pages_limits(const Container *container, unsigned mask);

/* hugetlbfs's options for an emptyDir in huge pages: "pagesize=2M". NULL: no container asks for
 * such pages; see manifest/. */
const char *huge_pages_mount_option(const PodSpec *spec, Medium medium);
