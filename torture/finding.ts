/** What a judge found: always a contradiction, never a matter of style. */
export interface Finding {
  /** The judge's name. */
  readonly judge: string;
  /** The contradiction, in one sentence. */
  readonly what: string;
}
