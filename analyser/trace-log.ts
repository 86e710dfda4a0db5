/** A trace kept in memory, for tests and small tools. */
import type { TextSink } from '../base/index.ts';

export class TraceLog implements TextSink {
  text = '';

  write(text: string): void {
    this.text += text;
  }

  close(): void {}
}
