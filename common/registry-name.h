/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Registry names, "example.com:5000": each registry has one spelling, so that names of the same
 * server that differ only in spelling become equal texts. Pure.
 *
 * The grammar is the "domain" of github.com/distribution/reference: labels of letters, digits and
 * '-' with dots between them, or an IPv6 address in brackets, and optionally a port. The normalised
 * name is in lower case; its port has no leading zeros and is omitted if it is 443, the port of
 * https; an IPv6 address is compressed as in RFC 5952; the names of Docker Hub become "docker.io".
 * A single label other than "localhost" always has its port ("registry:443"), because without a
 * port it would be the first part of a repository name.
 *
 * Two forms are refused, because libcurl would connect to an address that differs from the text: an
 * IPv4 address in another form than four decimal numbers ("127.1", "0x7f.0.0.1", "2130706433"), and
 * an IPv6 address that embeds an IPv4 address or has a zone. */

#include "common/error.h"

/* 0 with the normalised name, which the caller frees; -EINVAL with a message; or -ENOMEM. */
int registry_name_normalise(const char *text, char **ret, Error *reterr);

/* Whether 'text', in any spelling, is the registry with this normalised name. */
bool registry_name_equals(const char *text, const char *normal);

/* Whether a host, with or without a port, is this machine, judged by its name or address:
 * "localhost", 127.0.0.0/8, "[::1]". */
bool registry_is_loopback(const char *host);
