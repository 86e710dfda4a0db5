/**
 * The part of the page that says, for each mechanism by which a source's level or a card's ceiling is reached, which part
 * of it is physics, which is fitted, and which is a guess; and the designs that did not reach their rows.
 */
import { paragraph } from '../../explain/text/paragraph.ts';
import { markdownTable } from './shown.ts';

type Mechanism = readonly [name: string, physics: string, fitted: string, guess: string];

const mechanisms: readonly Mechanism[] = [
  [
    'level of a source: how long a message takes before its first byte',
    'Hosts, switches, firmware and virtual functions each add their part; only the sum is measured.',
    'One number of cycles for both ends of a pass, for each of five sources.',
    'That the sum is the same for all verbs and sizes, and that it lies in the pass.',
  ],
  [
    'virtual function',
    'Its registers are reached through an IOMMU. WRITE, SEND, READ and atomic take equally long in addition, which is one post each.',
    'From the core to the root complex: 0.377 us more than by the function of the host.',
    'That all of it is on the way of the post.',
  ],
  [
    'slow cores',
    'The source states 1.2 to 2.0 GHz. Rates of datagrams and latencies both depend on the clock.',
    'A clock of 0.9 GHz.',
    'The clock represents what a post costs there in addition.',
  ],
  [
    'order of reads of host memory',
    'A doorbell does not tell how many WQEs follow, so the card reads some ahead. The parts of a payload share the slot with them.',
    'That a read keeps its turn until all of its parts are requested.',
    'That the card has this order, and not another priority: messages of 512 to 2048 bytes take 0.76 ns for each byte instead of 0.85 (measured 0.74).',
  ],
  [
    'threads of one process (RFP)',
    'Threads that share a device context share its registers and a lock. A line of a contended spin lock is read again by each thread.',
    'A section of 378 ns, and 34 ns for each thread, which posts pass in turn; that WRITEs up to 220 bytes are inlined.',
    'That the section begins when the request leaves, so that a message alone is not delayed; that READs pass it as WRITEs do.',
  ],
  [
    'interrupts of ARM hosts',
    'A message signalled interrupt passes the interrupt controller and wakes a thread.',
    'From the message to the core: 10 us.',
    'That the time does not depend on the size of the message. Measured times grow by 3 us up to 4096 bytes.',
  ],
  [
    'ceiling of a ConnectX-2 at Gen2',
    'Completions of 128 bytes, as processors of the time make them (D-073), are 148 bytes on the link. A link of 8 lanes may begin a TLP in lane 0 of each symbol time (PCIe 4.2.2).',
    'Both, to one row of SEND and one of WRITE.',
    'The card has three ceilings: SEND 27.3, WRITE 25.1, READ 24.3 Gb/s. The model has one, 26.7.',
  ],
  [
    'path to the port',
    'A card of 100 Gb/s has a path that carries 100 Gb/s: at the clock of the model, 32 bytes a cycle. A packet passes whole.',
    'Its width on a ConnectX-3 (32 bytes a cycle) and a ConnectX-2 (64).',
    'The width on a ConnectX-5 is the narrowest possible one.',
  ],
  [
    'posts of a ConnectX-5',
    'Its library, rdma-core’s mlx5, posts each single request by BlueFlame if its WQE fits, atomics among them; that of a ConnectX-3 only inline ones and READs.',
    'That hosts of Kubernetes post by doorbells.',
    'That write combining is missing there.',
  ],
  [
    'write-back of an atomic',
    'The answer leaves when the new value is on its way to memory; the unit may stay occupied until it is there.',
    'The time, to one atomic rate; it holds for a virtual function and for a ConnectX-2 (H-181).',
    'That the unit waits for host memory, and not for something of its own.',
  ],
  [
    'READs of one QP on a ConnectX-5',
    'Payload of READ responses passes one unit, whose path is as wide as that to the port.',
    'Cycles of each packet in addition.',
    'That requester and responder share the unit as on a ConnectX-3.',
  ],
  [
    'switch of InfiniBand at 40 Gb/s',
    'It is of Infiniscale IV, whose vendor states delays of the order of 100 ns.',
    'Nothing.',
    'That the switch of LITE is one.',
  ],
];

/** Designs and what they gave. */
const tried: readonly string[] = [
  'Three ceilings of Gen2 by one mechanism: a maximum payload of 128 bytes gives 25.5 Gb/s for all verbs and is exceeded by SEND; completions of 128 bytes with TLPs that begin at 16 bytes give the same, at 4 bytes 27.4 (READ 13 % too fast). No rate of the slot alone tells WRITE from SEND, which move the same TLPs; a gap after each message (`hca.readGapCycles`) changes READs of 1024 bytes only.',
  'Message rates of a ConnectX-2: 8.8 million WRITEs a second need a core of 2.8 GHz or more beside the interval, which then makes SENDs of 8 bytes 16 % too fast: not taken.',
  'RoCE of a ConnectX-3 at 10 Gb/s: with the values of the fitted profile, READs of up to 32 bytes by 16 clients are 30 to 38 % too slow instead of 12 to 25 %. One machine represents 16 clients there, and its cache holds the contexts of all their QPs.',
  'READs by several threads of a client (RFP): from five threads on the card’s clients send 1.38 to 1.27 million a second whatever their number, those of the model 1.8 to 1.4. The source names mutexes, and contention between QPs and CQs.',
  'WRITE of one thread (RFP, G-001): with the source’s switch it takes 1.81 us, 13 % too long; a level of these hosts would be one more fitted value and makes the READs of two to four threads too fast.',
  'Ping-pong with events (ibv_rc_pingpong): up to 16 bytes a process sleeps 1.2 times in a round trip and wakes in 1.4 us, above 16 bytes twice and in 3.2 us, by the context switches that the source counts. The model wakes in 2.3 us either way: it has no processor that becomes idle.',
  'Ping-pong with polling (ibv_rc_pingpong): up to 16 bytes a round trip is 0.21 us shorter than measured (H-227, H-231, H-235). The source cabled the two ports of one card to each other, where both directions share its engines and its slot; the model has two hosts. As a send_lat, which the source did not run, these rows were within tolerance.',
  'Measuring device of pcie-bench, with queues for reads and writes that share only the link: reads and writes in turn of 64 bytes are 6 % too fast instead of 12 % too slow, those of 128, 256 and 1025 bytes 10 to 21 % too fast. With 88 accesses in the engine instead of 32, reads of memory outside the cache are 11 to 13 % too fast.',
  'WRITEs by eight threads of LITE: each message takes 0.27 to 0.36 us beyond its bytes, even where the cable binds. A section of posts overlaps with the bytes of other messages and does not add to them.',
  'Storm over eight threads, each with a region of its own, 20 GiB together: the first MTT lines of eight programs fall into one set, so that with four ways each READ waits for a miss at its requester, too. With eight lookups ahead a ConnectX-3 Pro reads 8.4 million a second over 160 QPs (measured 9.6); more lookups change nothing, because misses of QP contexts bind, which come one after the other at the receiver: over 320 QPs the model falls to 3 million at once, the card in steps up to 1280 QPs. A ConnectX-5 has no more lookups ahead in its profile: 24 of them, and a slot of 16 lanes, are not stated. With a cache of 2 MB for contexts of 375 bytes and translations, as Storm states (3.3), and 8192 READs to fill it, it reads 15 to 27 million a second, 20 to 44 % fewer than the card; in a slot of 16 lanes with send contexts of their own 22 to 27, which the eight threads limit, and with 20 threads 19 to 24.',
  'READs of a ConnectX-2 in a pair that carries 24.3 Gb/s of them at all sizes: a path of 7 bytes a cycle gives it, and makes single READs of 128 KiB and 8 MiB 14 % too slow.',
  'Datagrams of a ConnectX-5 that are not inlined, posted by BlueFlame as its library does: 9 to 24 % too fast in containers of Kubernetes, whose library is taken to ring doorbells. The step to three quarters of the rate at 256 bytes has no mechanism yet.',
  'SENDs of 4096 bytes of a ConnectX-5: 149 ns beyond their bytes, those of 2048 bytes 78 and of 8192 bytes 27. No gap after a message gives all three.',
  'RNR delays: codes 2 to 6 last 0.11 ms longer than their units, codes from 10 on 0.02 ms shorter. No rounding to a grain gives both.',
  'Slot of the ConnectX-3 Pro pair: neither Gen3 x4 nor Gen2 x8 carries its 26.0 Gb/s; they carry 27.9 and 28.3.',
];

type Refit = readonly [
  source: string,
  published: string,
  refitted: string,
  rows: string,
  refittedRows: string,
];

/** Values of a source that are fitted to another of its rows, and the rows of the families that they move. */
const refits: readonly Refit[] = [
  ['LITE', 'F-030: 6 cycles', 'F-035: 16 cycles', '18 of 20', '16 of 20'],
  ['isolation, latencies', 'G-038, G-039: 14 cycles', 'G-043: 5 cycles', '13 of 20', '12 of 20'],
  ['isolation, latencies', 'G-038, G-039: 14 cycles', 'G-040: 24 cycles or more', '13 of 20', '13 of 20'],
  ['transcript of 5 Nov 2014', 'B-022: 117 cycles', 'B-033: 150 cycles', '12 of 12', '8 of 12'],
  ['Azure HC44rs, latencies', 'T-022: 245 cycles', 'T-031: 270 cycles', '20 of 28', '19 of 28'],
  ['virtual functions', 'T-115: 427 ns', 'T-111: 557 ns', '11 of 15', '10 of 15'],
  ['ARM hosts, events', 'T-181: 10 us', 'T-184: 11.2 us', '8 of 11', '7 of 11'],
];

export const mechanismText = (): string =>
  [
    paragraph(
      'For each mechanism that gives the level of a source or the ceiling of a card: what is physics, what is fitted, and what is guessed.',
    ),
    markdownTable(['mechanism', 'physics', 'fitted', 'guess'], mechanisms),
    paragraph(
      'The level of a source, fitted to another row instead, of another size or verb (with the model of commit 0ff70074; the rows include the fitted ones):',
    ),
    markdownTable(['source', 'published fit', 'other fit', 'rows within', 'with the other fit'], refits),
    'Tried without success, or not taken:',
    tried.map((one) => paragraph(one, '- ')).join('\n'),
  ].join('\n\n');
