/** Messages of vfio-user whose header or payload is odd; most keep the framing, or a life would be short. */
import { closeSync, openSync } from 'node:fs';
import { viewOf } from '../../base/index.ts';
import {
  Command,
  createEventfd,
  dmaMap,
  dmaUnmap,
  header,
  messageOf,
  multiWrite,
  multiWriteEntry,
  regionAccess,
  setInterrupts,
} from '../../guests/slot/index.ts';
import type { Draw } from './draw.ts';

export interface RoughMessage {
  readonly bytes: Uint8Array;
  /** The caller closes them. */
  readonly descriptors: readonly number[];
  /** Whether its size field is wrong: the next bytes are taken for a part of it, or the server drops the client. */
  readonly isBroken: boolean;
  readonly text: string;
  /** The mapping that it removes, if the server grants it. */
  readonly unmaps: { readonly address: number; readonly isAll: boolean } | undefined;
}

const brokenChance = 0.0003;

export function drawMessage(draw: Draw): RoughMessage {
  const { random } = draw;
  const drawn = random.chance(0.85) ? random.between(1, 18) : random.below(65_536);
  const command = drawn === Command.DEVICE_RESET && random.chance(0.95) ? Command.DEVICE_GET_INFO : drawn;
  const payload = payloadFor(draw, random.chance(0.2) ? -1 : command);
  const isError = random.chance(0.05) ? 1 : 0;
  const bytes = messageOf(
    { id: random.below(65_536), command: command as never, noReply: random.below(2), isError },
    payload,
  );
  const isBroken = random.chance(brokenChance);
  if (isBroken) header.fields.sizeBytes.set(viewOf(bytes), 0, random.uint32());
  const descriptors = random.chance(0.05) ? drawDescriptors(draw, random.between(1, 4)) : [];
  const canUnmap = command === Command.DMA_UNMAP && payload.length >= dmaUnmap.sizeBytes && isError === 0;
  const view = viewOf(payload);
  return {
    bytes,
    descriptors,
    isBroken,
    text: `message of command ${command}, ${payload.length} bytes${isBroken ? ', broken' : ''}`,
    unmaps: canUnmap
      ? {
          address: dmaUnmap.fields.address.getNumber(view, 0),
          isAll: dmaUnmap.fields.all.get(view, 0) === 1,
        }
      : undefined,
  };
}

export function closeDescriptors(descriptors: readonly number[]): void {
  for (const descriptor of descriptors) closeSync(descriptor);
}

function payloadFor(draw: Draw, command: number): Uint8Array {
  const { random } = draw;
  const odd = (): bigint => BigInt(draw.oddNumber());
  switch (command) {
    case Command.DMA_MAP:
      return dmaMap.encode({
        argumentBytes: random.chance(0.9) ? dmaMap.sizeBytes : random.below(200),
        address: odd(),
        sizeBytes: odd(),
        fileOffset: odd(),
        readable: random.below(2),
        writable: random.below(2),
      });
    case Command.DMA_UNMAP:
      return dmaUnmap.encode({
        argumentBytes: dmaUnmap.sizeBytes,
        address: odd(),
        sizeBytes: odd(),
        all: random.chance(0.05) ? 1 : 0,
      });
    case Command.REGION_READ:
      return regionAccess.encode({
        offset: random.chance(0.6) ? BigInt(random.below(4096)) : odd(),
        region: random.below(10),
        count: random.chance(0.9) ? random.below(300) : random.below(5000),
      });
    case Command.REGION_WRITE: {
      const bytes = draw.bytes(random.below(300));
      const count = random.chance(0.9) ? bytes.length : random.below(2 ** 31);
      return Buffer.concat([regionAccess.encode({ offset: odd(), region: random.below(10), count }), bytes]);
    }
    case Command.REGION_WRITE_MULTI: {
      const count = random.below(6);
      const entries = Array.from({ length: count }, () =>
        multiWriteEntry.encode({
          offset: odd(),
          region: random.below(10),
          count: random.chance(0.9) ? random.below(9) : random.uint32(),
          data: draw.bytes(8),
        }),
      );
      const said = random.chance(0.9) ? BigInt(count) : odd();
      return Buffer.concat([multiWrite.encode({ count: said }), ...entries]);
    }
    case Command.DEVICE_SET_IRQS:
      return setInterrupts.encode({
        argumentBytes: setInterrupts.sizeBytes,
        dataType: random.below(8),
        action: random.below(8),
        index: random.below(7),
        start: random.chance(0.8) ? random.below(200) : random.uint32(),
        count: random.chance(0.8) ? random.below(8) : random.uint32(),
      });
    default:
      return draw.bytes(random.below(random.chance(0.98) ? 80 : 20_000));
  }
}

/** Descriptors of any kind. */
const drawDescriptors = (draw: Draw, count: number): number[] =>
  Array.from({ length: count }, () =>
    draw.any(
      createEventfd,
      () => openSync('/dev/null', 'r'),
      () => openSync('/proc/self/stat', 'r'),
    ),
  );
