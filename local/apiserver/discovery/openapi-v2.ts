import type { Catalogue } from '../registry/catalogue.ts';
import type { ResourceType } from '../registry/types.ts';
import { collectionPath } from './paths.ts';

/**
 * Media type that kubectl asks for, the only form in which it reads this document; and the type of the answer, where
 * `@` is not allowed.
 */
export const OPENAPI_V2_ASKED = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf';
export const OPENAPI_V2_TYPE = OPENAPI_V2_ASKED.replace('@', '.');

/**
 * OpenAPI v2 of the served kinds, as far as kubectl needs it. kubectl reads here, and not in v3, whether the API server
 * validates the fields of a `kind: List` (cli-runtime's query_param_verifier.go). Field numbers are those of gnostic's
 * OpenAPIv2.proto.
 */
export function openApiV2(catalogue: Catalogue, version: string): Buffer {
  const info = [field(1, 'Kubernetes'), field(2, version)];
  const paths = catalogue
    .all()
    .map((type) => field(2, field(1, `${collectionPath(type)}/{name}`), field(2, patchOf(type))));
  return Buffer.concat([field(1, '2.0'), field(2, ...info), field(8, ...paths)]);
}

function patchOf({ group, version, kind }: ResourceType): Buffer {
  const extension = [
    field(1, 'x-kubernetes-group-version-kind'),
    field(2, field(2, JSON.stringify({ group, version, kind }))),
  ];
  return field(8, ...WRITE_PARAMETERS, field(9), field(13, ...extension));
}

/** ParametersItem { Parameter { NonBodyParameter { QueryParameterSubSchema { in, name } } } } */
const WRITE_PARAMETERS = ['dryRun', 'fieldManager', 'fieldValidation', 'force'].map((name) =>
  field(8, field(1, field(2, field(3, field(2, 'query'), field(4, name))))),
);

/** Encodes a field, a string or a message of such fields, in the wire format of protobuf. */
function field(number: number, ...content: (Buffer | string)[]): Buffer {
  const body = Buffer.concat(content.map((part) => Buffer.from(part)));
  return Buffer.concat([varint((number << 3) | 2), varint(body.length), body]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 0x7f; rest = Math.floor(rest / 128)) bytes.push((rest & 0x7f) | 0x80);
  return Buffer.from([...bytes, rest]);
}
