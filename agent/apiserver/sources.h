/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* In place of a file's name, in the records of the API server's pods, and for DaemonSets of the API
 * server and the pods that this node creates for them. */
extern const char apiserver_pod_source[];
extern const char apiserver_daemonset_source[];
