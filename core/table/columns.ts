import { isRawNumber } from '../json.ts';
import { age } from './age.ts';
import { compileJsonPath } from './jsonpath.ts';

/** A column of a table, as `kubectl get` shows it. */
export interface Column {
  name: string;
  type: 'string' | 'integer' | 'number' | 'boolean' | 'date';
  format?: string;
  description?: string;
  /** Column priority: 0 is always shown, 1 with `-o wide`. */
  priority?: number;
  cell(object: { metadata: { name: string; creationTimestamp?: string } }, now: number): unknown;
}

/** A column as a version of a CustomResourceDefinition has it. */
export type PrinterColumn = Omit<Column, 'cell'> & { jsonPath: string };

/** Returns the columns of `kubectl get` for the objects of a version. */
export function columns(version: { additionalPrinterColumns?: readonly PrinterColumn[] }): Column[] {
  const name: Column = {
    name: 'Name',
    type: 'string',
    format: 'name',
    description:
      'Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names',
    cell: (object) => object.metadata.name,
  };
  const defined = version.additionalPrinterColumns;
  if (!defined) {
    const description = 'CreationTimestamp is a timestamp representing the server time when this object was created.';
    return [
      name,
      { name: 'Age', type: 'date', description, cell: (object, now) => age(object.metadata.creationTimestamp, now) },
    ];
  }
  return [
    name,
    ...defined.map((column): Column => {
      const read = compileJsonPath(column.jsonPath);
      return {
        name: column.name,
        type: column.type,
        ...(column.format ? { format: column.format } : {}),
        description: column.description || `Custom resource definition column (in JSONPath format): ${column.jsonPath}`,
        ...(column.priority ? { priority: column.priority } : {}),
        cell: (object, now) => cell(read(object), column.type, now),
      };
    }),
  ];
}

/** Returns the value in the form of the column's type; null where it has another type or is missing. */
function cell(values: unknown[], type: Column['type'], now: number): unknown {
  const first = values[0];
  const value = isRawNumber(first) ? Number(first.rawJSON) : first;
  if (value === undefined || value === null) return null;
  switch (type) {
    case 'integer':
      return typeof value === 'number' ? Math.trunc(value) : null;
    case 'number':
      return typeof value === 'number' ? value : null;
    case 'boolean':
      return typeof value === 'boolean' ? value : null;
    case 'date':
      return age(value, now);
    default:
      return values.map((v) => (typeof v === 'object' ? JSON.stringify(v) : String(v))).join(',');
  }
}
