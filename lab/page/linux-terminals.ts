/** Terminals of the hosts: text of their consoles, and what the reader types. */
import { Terminal } from '@xterm/xterm';
import { linuxColumns, linuxRows } from '../protocol.ts';

const scrollbackLines = 5000;

export class LinuxTerminals {
  readonly #typed: (host: number, text: string) => void;
  #terminals: { readonly terminal: Terminal; readonly element: HTMLElement }[] = [];
  /** Text for terminals that are not in the page yet. */
  #waiting: string[] = [];

  /** @param typed receives what the reader types */
  constructor(typed: (host: number, text: string) => void) {
    this.#typed = typed;
  }

  /** Shows a terminal in each of these elements; those that exist already keep their text. */
  show(places: readonly HTMLElement[]): void {
    for (const [host, place] of places.entries()) {
      const made = this.#terminals[host];
      if (made === undefined) this.#make(host, place);
      else if (made.element.parentElement !== place) place.replaceChildren(made.element);
    }
  }

  /** @param bytes of its console, a character for each */
  write(host: number, bytes: string): void {
    const terminal = this.#terminals[host]?.terminal;
    if (terminal === undefined) this.#waiting[host] = `${this.#waiting[host] ?? ''}${bytes}`;
    else if (bytes !== '') terminal.write(Uint8Array.from(bytes, (each) => each.charCodeAt(0)));
  }

  /** Removes all terminals with their text. */
  clear(): void {
    for (const { terminal, element } of this.#terminals) {
      terminal.dispose();
      element.remove();
    }
    this.#terminals = [];
    this.#waiting = [];
  }

  #make(host: number, place: HTMLElement): void {
    const terminal = new Terminal({
      ...{ rows: linuxRows, cols: linuxColumns, scrollback: scrollbackLines, fontSize: 13 },
      screenReaderMode: true,
    });
    const element = document.createElement('div');
    place.replaceChildren(element);
    // It measures its letters in the page.
    terminal.open(element);
    terminal.textarea?.setAttribute('aria-label', `Terminal of host ${host}`);
    // Answers to a program that requests the cursor's position would be inputs that no reader has typed.
    terminal.parser.registerCsiHandler({ final: 'n' }, () => true);
    terminal.onData((text) => this.#typed(host, text));
    this.#terminals[host] = { terminal, element };
    const waiting = this.#waiting[host] ?? '';
    this.#waiting[host] = '';
    this.write(host, waiting);
  }
}
