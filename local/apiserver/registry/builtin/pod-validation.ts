import { duplicate, type FieldError, forbiddenField, invalid, notSupported, required } from '../../fields.ts';
import { clone, equal } from '../../object.ts';
import { parseQuantity } from '../../validation/quantity.ts';
import { labelErrors } from '../names.ts';
import type { Container, Pod, PodSpec } from './pod-types.ts';

const restartPolicies = ['Always', 'OnFailure', 'Never'];
const envName = /^[ -<>-~]+$/;
const immutableSpec =
  'pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)';

export function podErrors(pod: Pod, old: Pod | undefined): FieldError[] {
  const { spec } = pod;
  const errors: FieldError[] = [];
  const volumes = new Set<string>();
  spec.volumes?.forEach((volume, i) => {
    errors.push(...nameErrors(volume.name, `spec.volumes[${i}].name`, volumes));
  });
  if (!spec.containers?.length) errors.push(required('spec.containers'));
  const names = new Set<string>();
  spec.containers?.forEach((container, i) => {
    errors.push(...containerErrors(container, `spec.containers[${i}]`, names, volumes));
  });
  spec.initContainers?.forEach((container, i) => {
    errors.push(...containerErrors(container, `spec.initContainers[${i}]`, names, volumes));
  });
  if (spec.restartPolicy && !restartPolicies.includes(spec.restartPolicy)) {
    errors.push(notSupported('spec.restartPolicy', spec.restartPolicy, restartPolicies));
  }
  if (old && !equal(changeable(pod.spec, old.spec), old.spec)) {
    errors.push(forbiddenField('spec', immutableSpec));
  }
  return errors;
}

/** Returns the new spec with the mutable fields reset: any remaining difference is not allowed. */
function changeable(spec: PodSpec, old: PodSpec): PodSpec {
  const copy = clone(spec);
  for (const list of ['containers', 'initContainers'] as const) {
    copy[list]?.forEach((container, i) => {
      const image = old[list]?.[i]?.image;
      if (image) container.image = image;
    });
  }
  for (const field of ['activeDeadlineSeconds', 'tolerations'] as const) {
    if (old[field] === undefined) delete copy[field];
    else Object.assign(copy, { [field]: old[field] });
  }
  // Gates can be removed, not added.
  const gates = (old.schedulingGates ?? []).map(({ name }) => name);
  if (copy.schedulingGates?.every(({ name }) => gates.includes(name)) ?? true) {
    if (old.schedulingGates) copy.schedulingGates = old.schedulingGates;
    else delete copy.schedulingGates;
  }
  // The kubelet sets the node of a pod here: there is no scheduler and no binding.
  if (!old.nodeName) delete copy.nodeName;
  return copy;
}

function nameErrors(name: string | undefined, field: string, seen: Set<string>): FieldError[] {
  if (!name) return [required(field)];
  const errors = labelErrors(name).map((message) => invalid(field, name, message));
  if (seen.has(name)) errors.push(duplicate(field, name));
  seen.add(name);
  return errors;
}

function containerErrors(container: Container, path: string, names: Set<string>, volumes: Set<string>): FieldError[] {
  const errors = nameErrors(container.name, `${path}.name`, names);
  if (!container.image) errors.push(required(`${path}.image`));
  container.env?.forEach((env, i) => {
    if (!env.name) errors.push(required(`${path}.env[${i}].name`));
    else if (!envName.test(env.name)) {
      const message =
        "a valid environment variable name must consist only of printable ASCII characters other than '='";
      errors.push(invalid(`${path}.env[${i}].name`, env.name, message));
    }
  });
  container.volumeMounts?.forEach((mount, i) => {
    if (!mount.name) errors.push(required(`${path}.volumeMounts[${i}].name`));
    else if (!volumes.has(mount.name)) {
      errors.push({
        reason: 'FieldValueNotFound',
        field: `${path}.volumeMounts[${i}].name`,
        message: `Not found: ${JSON.stringify(mount.name)}`,
      });
    }
    if (!mount.mountPath) errors.push(required(`${path}.volumeMounts[${i}].mountPath`));
  });
  errors.push(...resourceErrors(container, path));
  return errors;
}

function resourceErrors({ resources }: Container, path: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const [name, amount] of Object.entries(resources?.requests ?? {})) {
    const limit = resources?.limits?.[name];
    if (limit === undefined) continue;
    if ((parseQuantity(String(amount)) ?? 0) > (parseQuantity(String(limit)) ?? 0)) {
      const text = `must be less than or equal to ${name} limit of ${limit}`;
      errors.push(invalid(`${path}.resources.requests`, amount, text));
    }
  }
  return errors;
}
