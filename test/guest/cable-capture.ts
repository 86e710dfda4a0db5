/** The cable of stock guests as a capture, and the errors that the independent reader (analyser/independent) finds in its packets. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readCapture } from '../../analyser/capture/index.ts';
import { errorsOf, readCaptured } from '../../analyser/independent/index.ts';
import type { CaptureOptions } from '../../machine/analysis/index.ts';

/** The first packets of each end are kept: writing them must not outlast the time in which serving has to stop. */
const usualBytes = 2 ** 22;

export class CableCapture {
  readonly #folder = mkdtempSync(join(tmpdir(), 'hca-guest-pcap-'));
  readonly options: CaptureOptions & { readonly file: string };

  /**
   * @param hcas whose ends of the cable are captured, from the first one
   * @param sizeBytes that are kept
   */
  constructor(hcas: number, sizeBytes = usualBytes) {
    const ends = Array.from({ length: hcas }, (_, node) => ({ node }));
    this.options = { ends, sizeBytes, file: join(this.#folder, 'cable.pcapng') };
  }

  /**
   * Reads the file that serving has written at its end, and removes it.
   * @returns its packets of InfiniBand and RoCE, and their errors
   */
  read(): { readonly packets: number; readonly wrong: readonly string[] } {
    const { interfaces, frames } = readCapture(readFileSync(this.options.file));
    const wrong: string[] = [];
    let packets = 0;
    for (const { interface: node, bytes, direction, timePs } of frames) {
      const packet = readCaptured(interfaces[node]!.linkType, bytes);
      if (packet === undefined) continue;
      packets++;
      const errors = typeof packet === 'string' ? [packet] : errorsOf(packet);
      if (errors.length > 0) wrong.push(`node ${node}, ${direction} at ${timePs} ps: ${errors.join('; ')}`);
    }
    return { packets, wrong };
  }

  close(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
