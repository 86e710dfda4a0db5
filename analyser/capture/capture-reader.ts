/** Reads a whole capture file that must be sound: files of this project and of tests. */
import { type CapturedFrame, type CaptureInterface, CaptureStream } from './capture-stream.ts';

export interface Capture {
  readonly interfaces: readonly CaptureInterface[];
  readonly frames: readonly CapturedFrame[];
}

/** A file that is not a capture, or is cut or damaged; the message gives the place. */
export class CaptureError extends Error {
  constructor(atByte: number, reason: string) {
    super(`Not a capture file, at byte ${atByte}: ${reason}.`);
    this.name = 'CaptureError';
  }
}

/** All frames of a file. @throws CaptureError */
export function readCapture(file: Uint8Array): Capture {
  const frames: CapturedFrame[] = [];
  const stream = new CaptureStream((frame) => frames.push(frame));
  stream.push(file);
  stream.end();
  const [problem] = stream.problems;
  if (problem !== undefined) throw new CaptureError(problem.atByte, problem.reason);
  return { interfaces: stream.interfaces, frames };
}
