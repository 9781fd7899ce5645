import type { ApiObject } from '../../object.ts';
import type { Schema } from '../../validation/schema.ts';
import type { Column } from '../types.ts';

export interface CrdVersion {
  name: string;
  served: boolean;
  storage: boolean;
  schema?: { openAPIV3Schema?: Schema };
  subresources?: {
    status?: object;
    scale?: { specReplicasPath: string; statusReplicasPath: string; labelSelectorPath?: string };
  };
  additionalPrinterColumns?: {
    name: string;
    type: Column['type'];
    jsonPath: string;
    format?: string;
    description?: string;
    priority?: number;
  }[];
  selectableFields?: { jsonPath: string }[];
}

interface CrdNames {
  plural: string;
  singular?: string;
  kind: string;
  listKind?: string;
  shortNames?: string[];
  categories?: string[];
}

interface Condition {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  reason: string;
  message: string;
  lastTransitionTime: string;
}

export type Crd = ApiObject & {
  spec: {
    group: string;
    scope: 'Namespaced' | 'Cluster';
    names: CrdNames;
    versions: CrdVersion[];
    conversion?: { strategy: string };
    preserveUnknownFields?: boolean;
  };
  status?: { conditions: Condition[]; acceptedNames: CrdNames; storedVersions: string[] };
};

export const crdStorage = 'customresourcedefinitions.apiextensions.k8s.io';
