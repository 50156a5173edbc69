# SPDX-License-Identifier: Apache-2.0
"""The API server's operations on objects: strategic merge patches, JSON merge patches (RFC 7386), label selectors and
field selectors."""

import copy

# How lists are merged: by which key of their elements, or as sets. Lists that are not named are replaced.
MERGE_KEYS = {
    "conditions": "type", "addresses": "type", "ownerReferences": "uid", "podIPs": "ip", "hostIPs": "ip",
    "containers": "name", "initContainers": "name", "ephemeralContainers": "name", "volumes": "name", "env": "name",
    "volumeMounts": "mountPath", "volumeDevices": "devicePath", "ports": "containerPort",
    "imagePullSecrets": "name", "hostAliases": "ip", "topologySpreadConstraints": "topologyKey", "secrets": "name",
    "resourceClaims": "name", "resourceClaimStatuses": "name"}
SETS = {"finalizers", "podCIDRs"}
REPLACED = {"taints", "tolerations", "images", "containerStatuses", "initContainerStatuses",
            "ephemeralContainerStatuses", "volumesAttached"}
ORDER, DELETE_ITEMS = "$setElementOrder/", "$deleteFromPrimitiveList/"


def merge_patch(target, patch):
    """RFC 7386."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def strategic_patch(target, patch):
    """strategic-merge-patch, as far as nodes, pods, leases and events need it."""
    if patch.get("$patch") == "replace":
        return strip({key: value for key, value in patch.items() if key != "$patch"})
    result = dict(target) if isinstance(target, dict) else {}
    retained = patch.get("$retainKeys")
    if retained is not None:
        result = {key: value for key, value in result.items() if key in retained}
    for key, value in patch.items():
        if key.startswith(DELETE_ITEMS):
            name = key[len(DELETE_ITEMS):]
            result[name] = [item for item in result.get(name, []) if item not in value]
        elif key.startswith("$"):
            continue
        elif value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            merged = {} if value.get("$patch") == "delete" else strategic_patch(result.get(key), value)
            result[key] = merged
        elif isinstance(value, list):
            result[key] = merge_list(key, result.get(key) or [], value)
        else:
            result[key] = value
    for key, order in patch.items():
        if key.startswith(ORDER):
            sort_list(result, key[len(ORDER):], order)
    return result


def merge_list(name, old, patch):
    if any(isinstance(item, dict) and item.get("$patch") == "replace" for item in patch):
        return [strip(item) for item in patch if "$patch" not in item]
    if name in SETS:
        return old + [item for item in patch if item not in old]
    key = MERGE_KEYS.get(name)
    if key is None or name in REPLACED:
        return strip(patch)
    result = list(old)
    for item in patch:
        place = next((i for i, one in enumerate(result) if one.get(key) == item.get(key)), None)
        if item.get("$patch") == "delete":
            if place is not None:
                del result[place]
        elif place is None:
            result.append(strip(item))
        else:
            result[place] = strategic_patch(result[place], item)
    return result


def sort_list(target, name, order):
    """The named elements come in that order; each of the others stays after the element that it followed."""
    key = MERGE_KEYS.get(name)
    wanted = [item.get(key) if key and isinstance(item, dict) else item for item in order]
    rows, last = [], -1
    for place, item in enumerate(target.get(name) or []):
        value = item.get(key) if key and isinstance(item, dict) else item
        last = wanted.index(value) if value in wanted else last
        rows.append((last, place, item))
    if name in target:
        target[name] = [item for *_, item in sorted(rows, key=lambda row: row[:2])]


def strip(value):
    """The part of a patch that creates a missing value, without its directives and its nulls."""
    if isinstance(value, dict):
        return {key: strip(item) for key, item in value.items() if item is not None and not key.startswith("$")}
    if isinstance(value, list):
        return [strip(item) for item in value]
    return value


# Selectors

def field(obj, path):
    for part in path.split("."):
        obj = obj.get(part) if isinstance(obj, dict) else None
    return "" if obj is None else str(obj)


def requirements(text):
    """The name, the value and whether they must be equal, for each requirement of a selector like 'a=b,c!=d'."""
    rows = []
    for part in filter(None, text.split(",")):
        name, sign, value = part.partition("!=") if "!=" in part else part.partition("=")
        rows.append((name.strip(), value.lstrip("=").strip(), sign != "!="))
    return rows


def matches_fields(obj, selector):
    return all((field(obj, name) == value) == equal for name, value, equal in requirements(selector or ""))


def matches_labels(obj, selector):
    labels = obj["metadata"].get("labels") or {}
    for part in filter(None, split_labels(selector or "")):
        if " in " in part or " notin " in part:
            name, _, rest = part.partition(" ")
            values = [value.strip() for value in rest[rest.index("(") + 1:rest.index(")")].split(",")]
            if (labels.get(name) in values) != rest.startswith("in"):
                return False
        elif "=" in part:
            name, value, equal = requirements(part)[0]
            if (labels.get(name) == value) != equal:
                return False
        elif part.startswith("!") == (part.lstrip("!") in labels):
            return False
    return True


def split_labels(text):
    parts, depth = [""], 0
    for char in text:
        depth += {"(": 1, ")": -1}.get(char, 0)
        if char == "," and not depth:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts]
