/** The independent reader (analyser/independent) as specs ask it. */
import { errorsOf, type IndependentPacket, readFrame } from '../../analyser/independent/index.ts';

/** The packet that must be in these bytes. @throws where none is */
export function packetOf(read: IndependentPacket | string | undefined): IndependentPacket {
  if (read === undefined || typeof read === 'string')
    throw new Error(`no packet: ${read ?? 'another protocol'}`);
  return read;
}

/** What is wrong with a frame of RoCE. */
export const errorsIn = (frame: Uint8Array): string[] => errorsOf(packetOf(readFrame(frame)));

/** The ICRC that a frame of RoCE must have. */
export const dueIcrcOf = (frame: Uint8Array): number => packetOf(readFrame(frame)).icrc.due;
