/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The rules for names and short strings: RFC 1123 labels and subdomains, qualified names, port
 * names, environment variables. The check_…() functions have the signature of a Field's check, and
 * describe the problem without naming the field: "must be a DNS label, not 'Web_1'". */

#include "common/error.h"

enum {
        DNS_LABEL_MAX = 63,
        DNS_SUBDOMAIN_MAX = 253,
        KERNEL_HOST_NAME_MAX = 64,
        EXCERPT_SIZE = 96,
};

/* Prepares an untrusted string for a message: truncated after about sixty bytes, control characters
 * replaced. Returns the buffer. */
const char *excerpt(char buffer[EXCERPT_SIZE], const char *text);

/* RFC 1123, as Kubernetes checks names. The check_…() functions return 0, or -EINVAL with a message
 * that starts with "must". */
bool is_dns_label(const char *text);
bool is_dns_subdomain(const char *text);

int check_dns_label(const char *value, Error *reterr);
int check_dns_subdomain(const char *value, Error *reterr);

/* The UID of a pod: 32 lower-case hex digits for a pod of a file, or the RFC 4122 UUID from an API
 * server. At most 36 characters, all of which are safe in a path. */
int check_uid(const char *value, Error *reterr);

/* "app", "example.com/app": keys of labels and annotations. Annotation keys may have upper case in
 * the prefix. */
int check_label_key(const char *value, Error *reterr);
int check_annotation_key(const char *value, Error *reterr);
int check_label_value(const char *value, Error *reterr);

/* "example.com/gpu": a qualified name with a domain that is not Kubernetes' own, to which a quota
 * can prepend "requests.". */
int check_extended_resource(const char *value, Error *reterr);

/* Printable ASCII without '=', Kubernetes' relaxed rule. */
int check_env_name(const char *value, Error *reterr);

/* IANA service names: at most 15 of a-z, 0-9 and '-', with a letter. */
int check_port_name(const char *value, Error *reterr);

/* Parts of an HTTP request: the name of a header, its value, a path with a query, a host name or
 * address. */
int check_header_name(const char *value, Error *reterr);
int check_header_value(const char *value, Error *reterr);
int check_url_path(const char *value, Error *reterr);
int check_host(const char *value, Error *reterr);
int check_ip_address(const char *value, Error *reterr);

/* Like check_dns_label(); "" is the same as absent. */
int check_optional_dns_label(const char *value, Error *reterr);

/* A DNS subdomain of at most 64 characters, the kernel's limit for host names. */
int check_host_name(const char *value, Error *reterr);

/* Words of a line in resolv.conf: a search domain (with an optional final dot, or "." alone), and a
 * resolver option. */
int check_dns_search(const char *value, Error *reterr);
int check_dns_option(const char *value, Error *reterr);

/* An image reference: only white space around it is refused here; the image store parses it. */
int check_image(const char *value, Error *reterr);

/* An absolute path of the host without "..". */
int check_absolute_path(const char *value, Error *reterr);
int check_host_path(const char *value, Error *reterr);

/* The host name or address of an NFS server: nothing that mount.nfs interprets as an option. */
int check_nfs_server(const char *value, Error *reterr);

/* An option of mount.nfs, or several separated by commas, without characters that need quotes. */
int check_nfs_option(const char *value, Error *reterr);

/* The name of a CSI driver, which becomes a part of paths. */
int check_csi_driver(const char *value, Error *reterr);

/* A relative path without "..". */
int check_descending_path(const char *value, Error *reterr);

/* The name of a loaded AppArmor profile. */
int check_app_armor_name(const char *value, Error *reterr);

/* "net.ipv4.tcp_syncookies", or the same with slashes. */
int check_sysctl_name(const char *value, Error *reterr);

/* A path in a container, without ':', which many formats use as a separator. */
int check_mount_path(const char *value, Error *reterr);

/* A key of ConfigMap or Secret data, which is also a file name: letters, digits, '-', '_' and '.',
 * not "." and not starting with "..". */
int check_data_key(const char *value, Error *reterr);

/* Like check_descending_path(), for a file of an object volume, in which names that start with ".."
 * are reserved for the atomic writer. */
int check_file_path(const char *value, Error *reterr);

/* An RFC 3339 time: "2026-01-02T03:04:05Z". */
int check_time(const char *value, Error *reterr);

/* "25%" */
int check_percentage(const char *value, Error *reterr);
