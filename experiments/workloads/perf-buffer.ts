/**
 * The memory of one side of `perf`: one half to send from and one to receive into, in one memory region each or in
 * several. Places of messages are consecutive in each half; none crosses a boundary between memory regions.
 */
import { IBV_ACCESS_ON_DEMAND, type IbvMr, regMr } from '../../userlib/index.ts';
import type { PerfArgs } from './perf-plan.ts';
import type { RcEndpoint } from './rc-endpoint.ts';
import { allAccess } from './rc-states.ts';

const cacheLineBytes = 64;
/** A UD receive begins with room for a GRH (IBTA 11.4.1.2). */
export const grhBytes = 40;

/** Address and key of a half, for the peer. */
export interface HalfNote {
  readonly address: number;
  /** Keys of each part of the half, in order. */
  readonly keys: readonly number[];
}

export interface PerfBuffer {
  readonly sendAddress: number;
  readonly receiveAddress: number;
  /** Distance between places. */
  readonly placeBytes: number;
  /** Places of one memory region. */
  readonly placesPerKey: number;
  readonly lkeys: readonly number[];
  readonly receive: HalfNote;
  /** Size of the receiving half. */
  readonly receiveLkey: number;
  /** Times of mapping and registering. */
  readonly registrationPs: number;
}

interface Layout {
  readonly placeBytes: number;
  readonly keyCount: number;
  readonly placesPerKey: number;
  readonly partBytes: number;
  readonly halfBytes: number;
  readonly totalBytes: number;
}

function layoutOf({ region, sizeBytes, connection }: PerfArgs): Layout {
  const placeBytes = Math.ceil(sizeBytes / cacheLineBytes) * cacheLineBytes;
  const keyCount = region?.keys ?? 1;
  const places = region === undefined ? 1 : Math.ceil(region.bytes / placeBytes);
  const placesPerKey = Math.ceil(places / keyCount);
  const partBytes = placesPerKey * placeBytes;
  const halfBytes = keyCount * partBytes;
  const totalBytes = 2 * halfBytes + (connection === 'UD' ? cacheLineBytes : 0);
  return { placeBytes, keyCount, placesPerKey, partBytes, halfBytes, totalBytes };
}

/** Bytes that one program of a side maps and registers for its messages. */
export const perfBufferBytes = (args: PerfArgs): number => layoutOf(args).totalBytes;

export async function openPerfBuffer(endpoint: RcEndpoint, args: PerfArgs): Promise<PerfBuffer> {
  const { memory, cpu } = endpoint.program;
  const { isOnDemand, pageBytes } = args;
  const { placeBytes, keyCount, placesPerKey, partBytes, halfBytes, totalBytes } = layoutOf(args);
  const access = isOnDemand === true ? allAccess | IBV_ACCESS_ON_DEMAND : allAccess;
  const fromPs = cpu.localPs;
  const { stretchBytes } = args.region ?? {};
  const address = memory.map(totalBytes, {
    ...(pageBytes === undefined ? {} : { pageSize: pageBytes }),
    ...(stretchBytes === undefined ? {} : { stretchBytes }),
  });
  const register = async (from: number, count: number, bytes: number): Promise<IbvMr[]> => {
    const parts: IbvMr[] = [];
    for (let part = 0; part < count; part++)
      parts.push(await regMr(endpoint.pd, from + part * bytes, bytes, access));
    return parts;
  };
  const one = keyCount === 1 ? await register(address, 1, totalBytes) : [];
  const sendParts = keyCount === 1 ? one : await register(address, keyCount, partBytes);
  const receiveParts = keyCount === 1 ? one : await register(address + halfBytes, keyCount, partBytes);
  return {
    sendAddress: address,
    receiveAddress: address + halfBytes,
    placeBytes,
    placesPerKey,
    lkeys: sendParts.map(({ lkey }) => lkey),
    receive: { address: address + halfBytes, keys: receiveParts.map(({ rkey }) => rkey) },
    receiveLkey: receiveParts[0]!.lkey,
    registrationPs: cpu.localPs - fromPs,
  };
}
