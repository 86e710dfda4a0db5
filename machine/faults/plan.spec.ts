import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { parsedTopology } from '../topology/index.ts';
import { exampleFabric, faultListing } from './listing.ts';
import { checkedFaults, parsedFault, readFaults } from './plan.ts';

const read = (text: string) => checkedFaults([parsedFault(text)], 2)[0];

const readOnFabric = (text: string) =>
  checkedFaults([parsedFault(text)], 4, parsedTopology(exampleFabric))[0];

describe('a fault as an option', () => {
  it('names commands and statuses as the sheet does, or by number', () => {
    // SW2HW_CQ is 0x016, "bad resource state" 0x09 (interface sheet 3.2, 3.4).
    const fault = { kind: 'command', node: 0, command: 0x016, nth: { first: 2, last: 2 }, status: 0x09 };
    expect(read('command=SW2HW_CQ,nth=2,status=BAD_RES_STATE')).toEqual(fault);
    expect(read('command=0x16,nth=2,status=9')).toEqual(fault);
    expect(read('status=bad_res_state, nth=2, command=sw2hw_cq')).toEqual(fault);
  });

  it.each([
    ['nth=5', { first: 5, last: 5 }],
    ['nth=every', { first: 1, last: Number.POSITIVE_INFINITY }],
    ['nth=3-7', { first: 3, last: 7 }],
    ['nth=3-', { first: 3, last: Number.POSITIVE_INFINITY }],
  ])('counts events from 1: %s', (nth, expected) => {
    expect(read(`read=any,answer=lost,${nth}`)).toMatchObject({ nth: expected });
  });

  it.each([
    ['250ns', 250_000],
    ['10us', 10_000_000],
    ['1.5ms', 1_500_000_000],
    ['2s', 2_000_000_000_000],
    ['77', 77],
  ])('parses times with their unit: %s', (text, ps) => {
    expect(read(`port=down,at=${text},for=${text}`)).toMatchObject({ at: ps, for: ps });
  });

  it('applies to the first node by default', () => {
    expect(read('cable=pulled,at=1us')).toMatchObject({ node: 0 });
    expect(read('cable=pulled,at=1us,node=1')).toMatchObject({ node: 1 });
  });

  it.each([
    ['psn=50-150', { psn: { first: 50, last: 150, isRelative: false } }],
    ['psn=+7', { psn: { first: 7, last: 7, isRelative: true } }],
    ['psn=+0-3', { psn: { first: 0, last: 3, isRelative: true } }],
    ['chance=10%', { chance: 0.1, seed: undefined }],
    ['chance=0.025,seed=7', { chance: 0.025, seed: 7 }],
    ['qpn=3,only=responses,shots=2', { qpn: 3, only: 'responses', shots: 2, nth: undefined }],
    ['opcode=rc_acknowledge,nth=2', { opcode: 0x11, nth: { first: 2, last: 2 } }],
    ['opcode=0x0a', { opcode: 0x0a }],
  ])('selects packets by their headers, and by chance: %s', (text, expected) => {
    expect(read(`packet=lost,${text}`)).toMatchObject(expected);
  });

  it('can be tried: every example of the listing is valid', () => {
    for (const { example, more = [], kind } of faultListing())
      for (const text of [example, ...more]) expect(readOnFabric(text)).toMatchObject({ kind });
  });
});

describe('a fault of a fabric', () => {
  it('names a cable by its ends or by a port, which is the same fault', () => {
    // Hosts 0 and 1 are at ports 1 and 2 of switch 4; port 3 leads to switch 5.
    const byPort = readOnFabric('cable=pulled,node=4,portNumber=3,at=1ms');
    expect(byPort).toMatchObject({ node: 4, portNumber: 3 });
    expect(readOnFabric('cable=pulled,node=4,to=5,at=1ms')).toEqual(byPort);
    expect(readOnFabric('packet=lost,node=0,to=4,chance=1%')).toMatchObject({ node: 0, portNumber: 1 });
  });

  it.each([
    ['cable=pulled,node=6,at=1ms', 'field node, is "6", expected an integer from 0 to 5'],
    ['command=NOP,status=none,node=4', 'field node, is 4, expected a host: 4 is a switch, which has port, '],
    ['forwarding=none,node=0,host=1', 'field node, is 0, expected a switch of the topology'],
    [
      'cable=pulled,node=4,to=2,at=1ms',
      'field to, is 2, expected a node at the other end of a cable of node 4: 0, 1, 5',
    ],
    [
      'cable=pulled,node=4,to=5,portNumber=3,at=1ms',
      'field to, is 5, expected left out when portNumber is given',
    ],
    [
      'packet=lost,node=4,portNumber=4',
      'field portNumber, is 4, expected a port of switch 4 with a cable: 1, 2, 3',
    ],
    ['packet=lost,node=4,portNumber=65', 'field portNumber, is "65", expected an integer from 1 to 64'],
    ['packet=lost,node=0,portNumber=2', 'field portNumber, is 2, expected 1: host 0 has no cable at port 2'],
    ['port=down,node=4,after=NOP', 'expected left out: switch 4 executes no commands'],
    ['forwarding=none,node=4,host=4', 'field host, is 4, expected a host from 0 to 3'],
    [
      'forwarding=none,node=4,host=1,hostPort=2',
      'field hostPort, is 2, expected a port of host 1 that switch 4',
    ],
    [
      'forwarding=none,node=4,host=1,output=1',
      'field output, is 1, expected left out unless forwarding is wrong',
    ],
    ['forwarding=wrong,node=4,host=1', 'field output, is "left out", expected a port'],
    [
      'forwarding=wrong,node=4,host=1,output=9',
      'field output, is 9, expected a port of switch 4 with a cable: 1, 2, 3',
    ],
  ])('is rejected where it cannot happen: %s', (text, message) => {
    expect(() => readOnFabric(text)).toThrow(message);
  });

  it('names a port where several cables join two switches', () => {
    const { nodes, links } = parsedTopology(exampleFabric);
    const ends = [4, 5].map((node) => ({ node, port: 4 })) as [{ node: 4; port: 4 }, { node: 5; port: 4 }];
    const twice = { nodes, links: [...links, { ends }] };
    const faults = [parsedFault('cable=pulled,node=4,to=5,at=1ms')];
    expect(() => checkedFaults(faults, 4, twice)).toThrow(
      'field to, is 5, expected portNumber: cables at ports 3, 4 lead there',
    );
  });

  it('is refused without its topology', () => {
    expect(() => read('cable=pulled,node=0,to=1,at=1ms')).toThrow('none is declared');
    expect(() => read('forwarding=none,node=0,host=1')).toThrow('expected a switch of the topology');
  });
});

describe('rejects an invalid fault with entry, field, value and range', () => {
  it.each([
    ['port', 'fault is "port", expected name=value pairs such as command='],
    ['nth=1', 'fault 1 is "nth", expected a fault by one of command, interrupt, read'],
    ['comand=NOP,status=none', 'did you mean command?'],
    ['command=NOP,command=NOP,status=none', 'fault field command'],
    ['command=NOOP,status=none', 'fault 1 (command), field command, is "NOOP", expected a command (SYS_EN'],
    ['command=NOP', 'fault 1 (command), field status, is "left out", expected none, or a status (OK'],
    ['command=NOP,status=none,at=5us', 'field of fault 1 (command) is "at"'],
    ['command=NOP,status=0x100', 'field status, is "0x100"'],
    ['read=any,answer=lost,nth=0', 'field nth, is "0"'],
    ['read=any,answer=lost,nth=7-3', 'field nth, is "7-3"'],
    ['read=cqe,answer=lost', 'one of any, wqeRead'],
    ['port=down,at=5 parsecs', 'field at, is "5 parsecs", expected a time such as 250ns'],
    ['port=down', 'field at, is "left out", expected a time, or after'],
    ['port=down,at=1us,after=NOP', 'expected left out when after is given'],
    ['port=down,at=1us,delay=1us', 'expected left out when after is not given'],
    ['port=down,at=1us,node=2', 'field node, is "2", expected an integer from 0 to 1'],
    ['port=down,cable=pulled,at=1us', 'field of fault 1 (port) is "cable"'],
    ['interrupt=late,nth=1', 'field delay, is "left out"'],
    ['interrupt=spurious,at=1us', 'field vector, is "left out"'],
    ['interrupt=lost,at=1us', 'field at, is 1000000, expected left out'],
    ['interrupt=spurious,vector=1,at=1us,delay=1us', 'expected left out when at is given'],
    ['packet=corrupted,nth=5-4', 'field nth, is "5-4"'],
    ['packet=duplicated,delay=0ns', 'field delay, is 0, expected at least 1ps'],
    ['packet=lost,by=2', 'field by, is 2, expected left out unless packet is reordered'],
    ['packet=reordered,by=0', 'field by, is "0", expected an integer from 1 to 1024'],
    ['packet=late,delay=1001s', 'field delay, is 1001000000000000, expected at most 1000s'],
    ['packet=lost,qpn=16777216', 'field qpn, is "16777216", expected an integer from 0 to 16777215'],
    ['packet=lost,psn=7-3', 'field psn, is "7-3", expected a PSN up to 16777215'],
    ['packet=lost,psn=-3', 'field psn, is "-3"'],
    ['packet=lost,chance=0%', 'field chance, is "0%", expected a share as 10% or 0.1'],
    ['packet=lost,chance=110%', 'field chance, is "110%"'],
    ['packet=lost,seed=3', 'field seed, is 3, expected left out when chance is not given'],
    ['packet=lost,shots=0', 'field shots, is "0"'],
    ['packet=lost,opcode=RC_WRITE', 'field opcode, is "RC_WRITE", expected an opcode by name'],
    ['packet=lost,where=header', 'field where, is "header", expected left out unless packet is corrupted'],
    ['packet=late,delay=1us,crc=icrc', 'field crc, is "icrc", expected left out unless packet is corrupted'],
    ['catastrophic=0,at=1us', 'field catastrophic, is "0", expected an integer from 1'],
  ])('%s', (text, message) => {
    expect(() => read(text)).toThrow(message);
  });

  it('entries that are not objects of words and numbers', () => {
    expect(() => checkedFaults({ port: 'down' }, 2)).toThrow('expected a list of faults');
    expect(() => checkedFaults(['port=down'], 2)).toThrow('fault 1 is');
    expect(() => checkedFaults([{ read: 'any', answer: 'lost', nth: [1] }], 2)).toThrow(
      'field nth, is "[1]"',
    );
  });
});

describe('a file of faults', () => {
  const folder = mkdtempSync(join(tmpdir(), 'faults-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  const fileOf = (text: string): string => {
    const path = join(folder, 'plan.json');
    writeFileSync(path, text);
    return path;
  };

  it('has the same entries as options, with a version or as a plain list', () => {
    const faults = [{ port: 'down', at: '3us' }];
    expect(readFaults(fileOf(JSON.stringify({ version: 1, faults })))).toEqual(faults);
    expect(readFaults(fileOf(JSON.stringify(faults)))).toEqual(faults);
  });

  it.each([
    ['{', 'readable JSON'],
    ['{"faults":[]}', 'version of'],
    ['{"version":2,"faults":[]}', 'version of'],
    ['{"version":1,"faults":{}}', 'a list of faults'],
    ['{"version":1,"faults":[],"more":1}', '"more"'],
  ])('is rejected: %s', (text, message) => {
    expect(() => readFaults(fileOf(text))).toThrow(message);
  });

  it('that does not exist is named', () => {
    expect(() => readFaults('/nowhere/plan.json')).toThrow('faults file is "/nowhere/plan.json"');
  });

  it.each([
    ['qpn=0x40', 'field qpn, is "64", expected left out with hca.capability.transport=iwarp'],
    ['psn=+7-9', 'field psn, is "+7-9", expected left out with hca.capability.transport=iwarp'],
    ['opcode=RC_SEND_ONLY', 'field opcode, is "RC_SEND_ONLY", expected left out with'],
    ['only=requests', 'field only, is "requests", expected left out, or pauses, with'],
  ])('over iWARP, whose segments of TCP have no such header: %s', (text, message) => {
    const plan = [{ port: 'down', at: '1us' }, parsedFault(`packet=lost,${text}`)];
    expect(() => checkedFaults(plan, 2, undefined, 'iwarp')).toThrow(`fault 2 (packet), ${message}`);
    expect(checkedFaults(plan, 2, undefined, 'ibta')).toHaveLength(2);
  });

  it('no fault over iWARP that names frames by number, chance or shots, or PAUSE frames', () => {
    const texts = ['packet=lost,nth=5', 'packet=lost,chance=1%,shots=2', 'packet=lost,only=pauses'];
    expect(checkedFaults(texts.map(parsedFault), 2, undefined, 'iwarp')).toHaveLength(texts.length);
  });
});
