/**
 * The dialogue with the agent in the guest (image/init-scripts.ts), over any line: one command at a time, each
 * with a token of its own, its output between the two marks with that token:
 *
 *     host   7f3a1c.4 30 ls /\n LF                   token, seconds it may take, command as `printf %b` takes it
 *     guest  RS 7f3a1c.4 " begin" LF                 RS is the control character 1e
 *     guest  …whatever the command prints, errors among it…
 *     guest  RS 7f3a1c.4 " end 0" LF                 exit status, as the shell gives it
 *
 * Text outside two marks is the output of a program left running, and is dropped. The guest sends RS "ready" LF whenever its
 * agent starts; if that happens while a command runs, the guest has restarted by itself.
 */

/** Receives what the guest says. Text is latin1: a character for each byte. */
export interface AgentListener {
  /** The agent has started. `hadCommand`: while a command ran, which is lost. */
  started(hadCommand: boolean): void;
  /** The command prints. */
  printed(latin1: string): void;
  /** The command has ended. */
  ended(exitStatus: number): void;
}

const mark = '\x1e';
const readyLine = `${mark}ready\n`;
/** Text kept while no command runs, in which a mark may have begun. */
const idleCharactersMax = 256;

export class AgentDialogue {
  readonly #secret: string;
  readonly #listener: AgentListener;
  #received = '';
  #count = 0;
  #token: string | undefined;
  #hasBegun = false;

  /** @param secret distinguishes the marks from anything that a command prints */
  constructor(secret: string, listener: AgentListener) {
    this.#secret = secret;
    this.#listener = listener;
  }

  /** Whether a command runs. */
  get isBusy(): boolean {
    return this.#token !== undefined;
  }

  /** Begins a command, after which the guest kills it. @returns the line to send */
  begin(command: string, timeoutSeconds: number): string {
    this.#token = `${this.#secret}.${++this.#count}`;
    this.#hasBegun = false;
    return `${this.#token} ${timeoutSeconds} ${escaped(command)}\n`;
  }

  /** The present command is given up: its output is dropped. */
  abandon(): void {
    this.#token = undefined;
  }

  /** The line of a command that takes the guest down; no answer follows. */
  farewell(command: string): string {
    return `${this.#secret}.x 60 ${escaped(command)}\n`;
  }

  /** The guest has sent this text. */
  take(latin1: string): void {
    this.#received += latin1;
    for (;;) {
      const isDone =
        this.#hasBegun && this.#token !== undefined ? this.#takeOutput(this.#token) : this.#takeIdle();
      if (isDone) return;
    }
  }

  /** Processes text before a command's first mark. Returns true if more must be received. */
  #takeIdle(): boolean {
    const begin = this.#token === undefined ? undefined : `${mark}${this.#token} begin\n`;
    const readyAt = this.#received.indexOf(readyLine);
    const beginAt = begin === undefined ? -1 : this.#received.indexOf(begin);
    if (readyAt >= 0 && (beginAt < 0 || readyAt < beginAt)) {
      this.#takeReady(readyAt);
      return false;
    }
    if (begin !== undefined && beginAt >= 0) {
      this.#received = this.#received.slice(beginAt + begin.length);
      this.#hasBegun = true;
      return false;
    }
    this.#received = this.#received.slice(-idleCharactersMax);
    return true;
  }

  #takeReady(at: number): void {
    this.#received = this.#received.slice(at + readyLine.length);
    const hadCommand = this.isBusy;
    this.abandon();
    this.#listener.started(hadCommand);
  }

  /** Processes text between a command's two marks. Returns true if more must be received. */
  #takeOutput(token: string): boolean {
    const end = `${mark}${token} end `;
    const endAt = this.#received.indexOf(end);
    const lineEnd = endAt < 0 ? -1 : this.#received.indexOf('\n', endAt);
    const readyAt = this.#received.indexOf(readyLine);
    if (readyAt >= 0 && (endAt < 0 || readyAt < endAt)) {
      this.#takeReady(readyAt);
      return false;
    }
    if (lineEnd < 0) {
      // A mark may have arrived partially: a possible beginning is kept.
      const safe = endAt >= 0 ? endAt : lastMarkStart(this.#received, end.length);
      this.#print(this.#received.slice(0, safe));
      this.#received = this.#received.slice(safe);
      return true;
    }
    this.#print(this.#received.slice(0, endAt));
    const exitStatus = Number(this.#received.slice(endAt + end.length, lineEnd));
    this.#received = this.#received.slice(lineEnd + 1);
    this.abandon();
    this.#listener.ended(exitStatus);
    return false;
  }

  #print(latin1: string): void {
    if (latin1 !== '') this.#listener.printed(latin1);
  }
}

/** A command on one line: `printf %b` restores it, followed by a line feed. */
const escaped = (command: string): string =>
  [...new TextEncoder().encode(`${command}\n`)]
    .map((byte) => escapes.get(byte) ?? octalUnlessPrintable(byte))
    .join('');

const escapes: ReadonlyMap<number, string> = new Map([
  [0x0a, '\\n'],
  [0x5c, '\\\\'],
]);

const octalUnlessPrintable = (byte: number): string =>
  byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : `\\0${byte.toString(8).padStart(3, '0')}`;

/** Offset of the last mark character that could begin a mark of `markLength`; else the end of the text. */
function lastMarkStart(text: string, markLength: number): number {
  const at = text.indexOf(mark, Math.max(0, text.length - Math.max(markLength, readyLine.length)));
  return at < 0 ? text.length : at;
}
