/** Vendor syndromes as a program reads them: the values in public logs and, for local accesses, the check that refused. */
import { expect, it } from 'vitest';
import { VendorSyndrome } from '../../abi/index.ts';
import { Machine } from '../../machine/index.ts';
import {
  IBV_ACCESS_REMOTE_READ,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  type IbvWc,
} from '../../userlib/index.ts';
import { open, type Side, type SideOptions } from './testing/scene.ts';

/** The first completion of host 0, or of host 1. */
async function first(
  act: (side: Side) => Promise<void> | void,
  near: SideOptions = {},
  far: SideOptions = {},
  node = 0,
): Promise<Pick<IbvWc, 'status' | 'vendorErr'>> {
  await using machine = await Machine.create();
  await machine.load({
    node: 0,
    run: async (program) => {
      const side = await open(program, near);
      await act(side);
      const { status, vendorErr } = await side.take();
      await side.signal();
      return { status, vendorErr };
    },
  });
  await machine.load({
    node: 1,
    run: async (program) => {
      const side = await open(program, far);
      if (node === 0) {
        await side.awaitSignal();
        return null;
      }
      const { status, vendorErr } = await side.take();
      await side.awaitSignal();
      return { status, vendorErr };
    },
  });
  await machine.run();
  return (await machine.results())[node] as { status: number; vendorErr: number };
}

const write =
  (request: Parameters<Side['send']>[0] = {}) =>
  (side: Side): void => {
    side.send({ opcode: IBV_WR_RDMA_WRITE, ...request });
  };
const receive = (bytes: number): SideOptions => ({ inInit: (side) => side.receive({ bytes }) });

it('openucx/ucx issue 2973: exhausted retries are 0x81', async () => {
  expect(await first(write(), { rtr: () => ({ destQpNum: 12345 }) })).toEqual({
    status: 12,
    vendorErr: 0x81,
  });
});

it('open-mpi/ompi issue 4529: a remote access error is 136', async () => {
  expect(await first(write({ rkey: 0xdead00 }))).toEqual({ status: 10, vendorErr: 136 });
});

it('open-mpi/ompi issue 95: a flush is 249', async () => {
  const flushed = async (side: Side): Promise<void> => {
    side.send({ opcode: IBV_WR_RDMA_WRITE, rkey: 0xdead00 });
    side.send({ opcode: IBV_WR_RDMA_WRITE });
    await side.take();
  };
  expect(await first(flushed)).toEqual({ status: 5, vendorErr: 249 });
});

it('a message too long for its receive has a syndrome at both ends', async () => {
  const send = (side: Side): void => {
    side.send({ bytes: 200 });
  };
  expect(await first(send, {}, receive(100))).toEqual({
    status: 9,
    vendorErr: VendorSyndrome.REMOTE_INVALID_REQUEST,
  });
  expect(await first(send, {}, receive(100), 1)).toEqual({
    status: 1,
    vendorErr: VendorSyndrome.RECEIVE_LENGTH,
  });
});

it.each<[string, number, Parameters<Side['send']>[0], SideOptions]>([
  ['no region has the key', 0x32, { lkey: 0xbad00 }, {}],
  ['the access reaches out of the region', 0x34, { bytes: 2048 }, { regionBytes: 1024 }],
  ['the right is missing', 0x35, { opcode: IBV_WR_RDMA_READ }, { access: IBV_ACCESS_REMOTE_READ }],
])('a local protection error says which check refused: %s', async (_name, vendorErr, request, near) => {
  expect(await first(write(request), near)).toEqual({ status: 4, vendorErr });
});

it('exhausted RNR retries have a syndrome of their own, and success has none', async () => {
  const send = (side: Side): void => {
    side.send();
  };
  expect(await first(send)).toEqual({ status: 13, vendorErr: VendorSyndrome.RNR_RETRIES_EXCEEDED });
  expect(await first(send, {}, receive(256))).toEqual({ status: 0, vendorErr: 0 });
});
