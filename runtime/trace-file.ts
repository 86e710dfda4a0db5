/**
 * A trace in files of bounded size: keeps the beginning, where the driver probes, and the end, where a failure occurred.
 *
 *     FILE        the first quarter of the size, never dropped
 *     FILE.1 …    later text, a quarter each; the last three are kept
 *
 * Text is buffered in memory and written in large pieces: a trace costs no simulated time and few system calls.
 */
import { closeSync, existsSync, openSync, readdirSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { ConfigurationError, codeOf, type TextSink } from '../base/index.ts';
import { writeAll } from './files.ts';

const pieceChars = 1 << 18;
const partsKept = 4;

export class TraceFile implements TextSink {
  readonly file: string;
  readonly #partBytes: number;
  #handle: number | undefined;
  #part = 0;
  #writtenBytes = 0;
  #pieces: string[] = [];
  #gathered = 0;

  /**
   * @param sizeBytes limit of all parts together (a single event may exceed it)
   * @throws ConfigurationError if the file cannot be written
   */
  constructor(file: string, sizeBytes: number) {
    this.file = file;
    this.#partBytes = Math.max(1, Math.floor(sizeBytes / partsKept));
    removeParts(file);
    this.#handle = this.#open(file);
  }

  write(text: string): void {
    this.#pieces.push(text);
    this.#gathered += text.length;
    if (this.#gathered >= Math.min(pieceChars, this.#partBytes >> 1)) this.flush();
  }

  /** Writes all buffered text to the operating system. */
  flush(): void {
    if (this.#gathered === 0 || this.#handle === undefined) return;
    if (this.#writtenBytes > 0 && this.#writtenBytes + this.#gathered > this.#partBytes) this.#turn();
    this.#writtenBytes += this.#writeAll(this.#handle, this.#pieces.join(''));
    this.#pieces = [];
    this.#gathered = 0;
  }

  close(): void {
    this.flush();
    if (this.#handle !== undefined) closeSync(this.#handle);
    this.#handle = undefined;
  }

  #turn(): void {
    if (this.#handle !== undefined) closeSync(this.#handle);
    this.#part++;
    const dropped = this.#part - partsKept + 1;
    if (dropped >= 1) rmSync(`${this.file}.${dropped}`, { force: true });
    this.#handle = this.#open(`${this.file}.${this.#part}`);
    this.#writtenBytes = 0;
  }

  #open(file: string): number {
    try {
      return openSync(file, 'w');
    } catch (error) {
      throw this.#unwritable(error);
    }
  }

  #writeAll(handle: number, text: string): number {
    try {
      return writeAll(handle, text);
    } catch (error) {
      throw this.#unwritable(error);
    }
  }

  #unwritable(error: unknown): ConfigurationError {
    return new ConfigurationError('--trace-file', this.file, `a file that can be written (${codeOf(error)})`);
  }
}

/** Parts of an older trace with this name would be mistaken for this one's. */
function removeParts(file: string): void {
  const folder = dirname(file);
  if (!existsSync(folder)) return;
  const isPart = (name: string): boolean =>
    name.startsWith(`${basename(file)}.`) && /^\d+$/.test(name.slice(basename(file).length + 1));
  for (const name of readdirSync(folder).filter(isPart)) rmSync(join(folder, name), { force: true });
}
