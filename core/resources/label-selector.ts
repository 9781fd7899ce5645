import type { LabelSelector } from './schema.ts';

/** Reports whether the selector matches the labels; an empty selector matches everything, as in Kubernetes. */
export function selects(selector: LabelSelector, labels: Readonly<Record<string, string>>): boolean {
  const { matchLabels = {}, matchExpressions = [] } = selector;
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every((expression) => holds(expression, labels[expression.key]))
  );
}

type Expression = NonNullable<LabelSelector['matchExpressions']>[number];

function holds({ operator, values = [] }: Expression, value: string | undefined): boolean {
  switch (operator) {
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
  }
}
