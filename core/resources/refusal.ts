/** Refusal of a setting by the class of its session: path of the field, the problem with it, and what to do. */
export interface Refusal {
  /** NotAllowed: the class forbids it. InvalidSpec: it cannot work with this class. */
  reason: 'NotAllowed' | 'InvalidSpec';
  field: string;
  message: string;
}
