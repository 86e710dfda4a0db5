/** What a judge found: never an opinion about style, always something that cannot be. */
export interface Finding {
  /** Who found it: the judge's name. */
  readonly judge: string;
  /** What cannot be, in one sentence. */
  readonly what: string;
}
