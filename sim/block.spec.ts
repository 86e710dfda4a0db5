import { describe, expect, it } from 'vitest';
import { connectBlocks, listWires, type Wires } from './block.ts';

interface Waker {
  wake(cycle: number): void;
}

class Source {
  readonly inner = { wake: (cycle: number): void => this.sink.wake(cycle + 1) };
  sink!: Waker;

  connect({ sink }: { readonly sink: Waker }): void {
    this.sink = sink;
  }
}

class Sink {
  readonly woken: number[] = [];

  wake(cycle: number): void {
    this.woken.push(cycle);
  }
}

const makeBlocks = () => ({ sink: new Sink(), first: new Source(), second: new Source() });
type Chain = ReturnType<typeof makeBlocks>;
const wires = (b: Chain): Wires<Chain> => ({ first: { sink: b.second.inner }, second: { sink: b.sink } });

interface Fan {
  readonly fan: { connect(ports: { readonly sinks: readonly Waker[] }): void };
  readonly first: Waker;
  readonly second: Waker;
}

describe('a table of wires', () => {
  it('gives each block with ports its neighbours, for any order of creation', () => {
    const blocks = makeBlocks();
    connectBlocks(blocks, wires(blocks));
    blocks.first.sink.wake(5);
    expect(blocks.sink.woken).toEqual([6]);
  });

  it('may lead from one port to several blocks', () => {
    const fanWires = (b: Fan): Wires<Fan> => ({ fan: { sinks: [b.first, b.second] } });
    expect(listWires(fanWires)).toEqual([
      { block: 'fan', port: 'sinks', to: 'first' },
      { block: 'fan', port: 'sinks', to: 'second' },
    ]);
  });

  it('can be listed without the blocks', () => {
    expect(listWires(wires)).toEqual([
      { block: 'first', port: 'sink', to: 'second.inner' },
      { block: 'second', port: 'sink', to: 'sink' },
    ]);
  });
});
