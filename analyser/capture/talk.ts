/** Collects the lines of conversations, in bounded memory however long a capture is. */

/** A line of a conversation. */
export interface Utterance {
  readonly number: number;
  readonly timePs: bigint;
  /** Whether the packet comes from the side whose requests opened the connection. */
  readonly isFromFirst: boolean;
  readonly words: string;
  /** Whether the line shows an error or the recovery from one. */
  readonly isTrouble: boolean;
}

export interface Conversation {
  readonly service: string;
  /** Port and QP of each side; the QP is unknown until a packet addresses it. */
  readonly first: string;
  readonly second: string;
  /** Time of its first packet, whether or not that has a line. */
  readonly beganPs: bigint;
  readonly utterances: readonly Utterance[];
  /** Lines beyond the kept ones. */
  readonly unkept: number;
  readonly counts: Readonly<Record<string, number>>;
}

/** Limits on the lines that a capture keeps. */
export interface LineChoice {
  /** Greatest number of lines of all conversations together. */
  readonly lines: number;
  /** Whether to keep only lines of errors and recovery. */
  readonly isTroubleOnly: boolean;
}

/** Distributes lines among the conversations of a capture. */
export class LineBudget {
  readonly isTroubleOnly: boolean;
  #left: number;

  constructor({ lines, isTroubleOnly }: LineChoice) {
    this.#left = lines;
    this.isTroubleOnly = isTroubleOnly;
  }

  /** False once all lines are used. */
  take(): boolean {
    if (this.#left <= 0) return false;
    this.#left--;
    return true;
  }
}

/** A line that may be extended while its packet may still be seen at another place. */
export class Line {
  readonly number: number;
  readonly timePs: bigint;
  readonly isFromFirst: boolean;
  words: string;
  isTrouble: boolean;

  constructor({ number, timePs, isFromFirst, words, isTrouble }: Utterance) {
    this.number = number;
    this.timePs = timePs;
    this.isFromFirst = isFromFirst;
    this.words = words;
    this.isTrouble = isTrouble;
  }
}

/** The lines and counts of one conversation. */
export class TalkLines {
  readonly counts: Record<string, number> = {};
  unkept = 0;
  /** Earliest time of a line, kept or not. */
  beganPs: bigint | undefined;
  readonly #budget: LineBudget;
  #lines: Line[] = [];

  constructor(budget: LineBudget) {
    this.#budget = budget;
  }

  count(what: string): void {
    this.counts[what] = (this.counts[what] ?? 0) + 1;
  }

  say(utterance: Utterance): Line {
    const line = new Line(utterance);
    this.#begin(line.timePs);
    if (line.isTrouble || !this.#budget.isTroubleOnly) this.#keep(line);
    return line;
  }

  /** Adds the facts of another sighting of a packet. */
  remark(line: Line, words: string): void {
    const isKept = line.isTrouble || !this.#budget.isTroubleOnly;
    line.words += ` (${words})`;
    line.isTrouble = true;
    if (!isKept) this.#keep(line);
  }

  /**
   * Merges in the lines of another conversation that belongs to this one.
   * @param isOpposite its first side is the second one here
   */
  absorb(other: TalkLines, isOpposite: boolean): void {
    for (const line of other.#lines)
      this.#lines.push(new Line({ ...line, isFromFirst: line.isFromFirst !== isOpposite }));
    for (const [what, count] of Object.entries(other.counts))
      this.counts[what] = (this.counts[what] ?? 0) + count;
    this.unkept += other.unkept;
    if (other.beganPs !== undefined) this.#begin(other.beganPs);
  }

  /** Returns the lines in file order. */
  sorted(): Utterance[] {
    return this.#lines.toSorted((left, right) => left.number - right.number);
  }

  #begin(timePs: bigint): void {
    if (this.beganPs === undefined || timePs < this.beganPs) this.beganPs = timePs;
  }

  #keep(line: Line): void {
    if (this.#budget.take()) this.#lines.push(line);
    else this.unkept++;
  }
}
