/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The rules for names and short strings: RFC 1123 labels and subdomains, qualified names, port
 * names, environment variables. The check_… functions have the shape of a Field's check and say
 * what is wrong without naming the field: "must be a DNS label, not 'Web_1'". */

#include "common/error.h"

enum {
        DNS_LABEL_MAX = 63,
        DNS_SUBDOMAIN_MAX = 253,
        KERNEL_HOST_NAME_MAX = 64,
        EXCERPT_SIZE = 96,
};

/* A stranger's string as it may stand in a sentence: cut after some sixty bytes, control characters
 * replaced. Returns the buffer. */
const char *excerpt(char buffer[EXCERPT_SIZE], const char *text);

bool is_dns_label(const char *text);
bool is_dns_subdomain(const char *text);

int check_dns_label(const char *value, Error *reterr);
int check_dns_subdomain(const char *value, Error *reterr);

/* 32 lower-case hex digits, as we make them, or an RFC 4122 UUID, as an API server does. Never more
 * than 36 characters, none of which means anything in a path. */
int check_uid(const char *value, Error *reterr);

/* "app", "example.com/app": keys of labels and annotations. Annotations may be of any case. */
int check_label_key(const char *value, Error *reterr);
int check_annotation_key(const char *value, Error *reterr);
int check_label_value(const char *value, Error *reterr);

/* Printable ASCII without '=', as Kubernetes has it since it relaxed the rule. */
int check_env_name(const char *value, Error *reterr);

/* IANA service names: at most 15 of a-z, 0-9 and '-', with a letter. */
int check_port_name(const char *value, Error *reterr);

/* What stands in a request: the name of an HTTP header, its value, a path with a query, the name
 * or address of a host. */
int check_header_name(const char *value, Error *reterr);
int check_header_value(const char *value, Error *reterr);
int check_url_path(const char *value, Error *reterr);
int check_host(const char *value, Error *reterr);
int check_ip_address(const char *value, Error *reterr);

/* As check_dns_label(); "" is the same as absent. */
int check_optional_dns_label(const char *value, Error *reterr);

/* A DNS subdomain that the kernel takes for a host name, which may have 64 characters. */
int check_host_name(const char *value, Error *reterr);

/* A line of resolv.conf is words: a search domain (a dot may follow it, or be all of it), and a
 * word of its options. */
int check_dns_search(const char *value, Error *reterr);
int check_dns_option(const char *value, Error *reterr);

/* No white space around it; whether it is a reference is for the image store to say. */
int check_image(const char *value, Error *reterr);

/* An absolute path of the host's without "..". */
int check_host_path(const char *value, Error *reterr);

/* A relative path without "..". */
int check_descending_path(const char *value, Error *reterr);

/* The name of a profile that AppArmor has loaded. */
int check_app_armor_name(const char *value, Error *reterr);

/* "net.ipv4.tcp_syncookies", or the same with slashes. */
int check_sysctl_name(const char *value, Error *reterr);

/* A path in a container: no ':', which would end it in many a format. */
int check_mount_path(const char *value, Error *reterr);

/* A key of a ConfigMap's or Secret's data, which is also a file's name: letters, digits, '-', '_'
 * and '.', neither "." nor beginning with "..". */
int check_data_key(const char *value, Error *reterr);

/* As check_descending_path(), for a file in a volume of ours, whose own names begin with "..". */
int check_file_path(const char *value, Error *reterr);

/* An RFC 3339 time: "2026-01-02T03:04:05Z". */
int check_time(const char *value, Error *reterr);

/* "25%" */
int check_percentage(const char *value, Error *reterr);
