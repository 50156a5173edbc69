/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What bundles ask for, by whom it is known. */

#include "agent/bundle/bundle.h"

struct Agent;

/* Plugs them in; who is asked may be built later. */
void set_bundle_resolvers(struct Agent *agent, BundleConfig *config);
