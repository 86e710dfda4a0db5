/** Mechanisms of the model that are suspected where rows are missed. The page lists them with the rows that show them. */

export const suspicions = {
  requesterInterval:
    'The requester spends too little on a READ request and on a WQE whose payload it fetches: 12 cycles a message, cards show 16 to 26.',
  sameQpInterval:
    'One interval between work requests of a QP (`hca.sameQpIntervalCycles`) for all services: datagrams need less, READs and SENDs more.',
  largeMessages:
    'Gaps of the card add to each message (period = constant + bytes / rate); in the model the slowest stage alone counts.',
  idleRead:
    'The idle PCIe read (`pcie.rootComplex.readLatencyPs`) was taken from a measuring device and holds its own delay: payload fetches and atomics wait too long, and the responder of a READ makes up for it.',
  wqeCache: 'The WQE cache has no knee: WQEs that are posted far ahead are not evicted and fetched again.',
  contextCache: 'The context cache is one LRU of 256 entries: no gradual decline over QPs, then a cliff.',
  datagramWqe:
    'Of the lines of a WQE only the first step of a datagram shows, and inlined ones cost too little.',
  atomics: 'Atomics are serialised by a PCIe read that is too slow.',
  translationReach: 'The translation cache reaches four times too far, or a miss costs too little.',
  slotPayload:
    'Real hosts and their links carry less than the closed form over PCIe, at Gen2 and below the FDR ceiling.',
  measuringDevice: 'The measuring device has times of its own beyond those that are modelled.',
  responderRate:
    'The responder takes packets at one interval, whatever they ask for and however long they are.',
  otherHost: 'The host is another: absolute latencies of small messages differ between hosts by up to 40 %.',
  timerUnits:
    'The card keeps RNR and retry time-outs in units of its own, three times those of the standard, and with a least value.',
  framing: 'The source counts framing of a TLP otherwise than the specification adds it up.',
  postsOfACore:
    'A core spends on each post the 150 ns of C-161; where it posts one after the other, cards were given more: posts overlap.',
  linesInSlot:
    'Two lines of a WQE for each datagram fill the slot beside what comes in, where the card still had room.',
  systemCalls: 'The source counts the whole way through three system calls, the model only the crossings.',
} as const;

export type SuspicionName = keyof typeof suspicions;
