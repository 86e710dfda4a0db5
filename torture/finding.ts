/** A contradiction that a judge found. */
export interface Finding {
  /** The judge's name. */
  readonly judge: string;
  /** The contradiction, in one sentence. */
  readonly what: string;
}
