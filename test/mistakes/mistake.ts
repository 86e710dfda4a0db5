/** A defect put into the model on purpose, to check that the stories of `hca torture` find it. */
export interface Mistake {
  /** Short and unique: names the mistake on the command line and in the table of bench/notes/torture.md. */
  readonly name: string;
  /** The resulting error, in one sentence. */
  readonly what: string;
  readonly kind: MistakeKind;
  /** The scene that shows it most often; left out: stories of players. */
  readonly scene?: string;
  /** Stories of served devices show it (torture/served). */
  readonly isServed?: true;
  /** Stories of fabrics show it (torture/fabric). */
  readonly isFabric?: true;
  /** The spec that shows it; left out: stories do. */
  readonly spec?: string;
  /** Path from the root of the repository. */
  readonly file: string;
  /** Text that occurs exactly once in the file … */
  readonly find: string;
  /** … and its replacement; the result still compiles. */
  readonly replace: string;
}

export const mistakeKinds = [
  'comparison off by one',
  'generation not raised',
  'fence left out',
  'counter not reset',
  'check skipped',
  'wrong stage',
  'wrong order',
  'wrong length',
  'wrong address',
  'lost event',
  'resource not returned',
  'wrong status',
  'wrong time',
] as const;
type MistakeKind = (typeof mistakeKinds)[number];
