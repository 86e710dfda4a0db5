/** The independent reader (analyser/independent) as specs use it. */
import { errorsOf, type IndependentPacket, readFrame } from '../../analyser/independent/index.ts';

/** The packet that must be in these bytes. @throws if none is */
export function packetOf(read: IndependentPacket | string | undefined): IndependentPacket {
  if (read === undefined || typeof read === 'string')
    throw new Error(`no packet: ${read ?? 'another protocol'}`);
  return read;
}

/** Errors of a RoCE frame. */
export const errorsIn = (frame: Uint8Array): string[] => errorsOf(packetOf(readFrame(frame)));

/** The ICRC that a RoCE frame must have. */
export const dueIcrcOf = (frame: Uint8Array): number => packetOf(readFrame(frame)).icrc.due;
