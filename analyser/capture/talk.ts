/** Lines of a conversation as they are collected: bounded, however long a capture is. */

/** A line of a conversation. */
export interface Utterance {
  readonly number: number;
  readonly timePs: bigint;
  /** True of the side whose requests opened the connection. */
  readonly isFromFirst: boolean;
  readonly words: string;
  /** Something went wrong, or makes up for what did. */
  readonly isTrouble: boolean;
}

export interface Conversation {
  readonly service: string;
  /** Port and QP of each side; the QP of a side that no packet has addressed is not known. */
  readonly first: string;
  readonly second: string;
  /** Time of its first packet, whether that has a line or not. */
  readonly beganPs: bigint;
  readonly utterances: readonly Utterance[];
  /** Lines beyond those that are kept. */
  readonly unkept: number;
  readonly counts: Readonly<Record<string, number>>;
}

/** The lines of a capture that are kept. */
export interface LineChoice {
  /** Most lines of all conversations together. */
  readonly lines: number;
  /** Only lines of what went wrong or makes up for it. */
  readonly isTroubleOnly: boolean;
}

/** Grants lines to the conversations of a capture. */
export class LineBudget {
  readonly isTroubleOnly: boolean;
  #left: number;

  constructor({ lines, isTroubleOnly }: LineChoice) {
    this.#left = lines;
    this.isTroubleOnly = isTroubleOnly;
  }

  /** False when all lines are taken. */
  take(): boolean {
    if (this.#left <= 0) return false;
    this.#left--;
    return true;
  }
}

/** A line that may be added to while its packet may be seen at another place. */
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
  /** Least time of a line, kept or not. */
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

  /** Adds what another sighting of a packet shows. */
  remark(line: Line, words: string): void {
    const isKept = line.isTrouble || !this.#budget.isTroubleOnly;
    line.words += ` (${words})`;
    line.isTrouble = true;
    if (!isKept) this.#keep(line);
  }

  /** Takes over the lines of what turns out to be this conversation. @param isOpposite its first side is the second here */
  absorb(other: TalkLines, isOpposite: boolean): void {
    for (const line of other.#lines)
      this.#lines.push(new Line({ ...line, isFromFirst: line.isFromFirst !== isOpposite }));
    for (const [what, count] of Object.entries(other.counts))
      this.counts[what] = (this.counts[what] ?? 0) + count;
    this.unkept += other.unkept;
    if (other.beganPs !== undefined) this.#begin(other.beganPs);
  }

  /** In the order of the file. */
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
