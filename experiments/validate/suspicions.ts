/** Model mechanisms suspected of causing missed rows. The page lists them with the rows that show them. */

export const suspicions = {
  spread:
    'Latencies of the model hardly spread: the least of a thousand is what most of them are, where on the card it is a tenth below.',
  gatherSteps:
    'A payload that is fetched passes at 16 bytes a cycle; the card takes steps: 15.8 Mops up to 192 bytes, 12.4 from 224 on.',
  wqeCache:
    'WQEs read ahead stay on chip until they are executed. The card reads five to seven lines for each READ from windows of 64 on, and two to three for each WRITE from 16 on, three quarters of what the slot carries: as if it dropped what it had read ahead, and read it again. So does the model where WQE lines are fewer than QPs (`hca.wqeLineCount` 12 for these 16: 18 Mops of READs and 21 of WRITEs at a window of 64, 60 and 67 million lines; 8 with eight WQEs read ahead: 12.6 and 78), but for READs from 16 on, too, and for both operations alike. Tried beside that: lines dropped at the end of each turn (half of all rates of one QP with them), and 12 lines apart for what is read, 8 WQEs of a QP by BlueFlame, READs counted where their answers arrive (WRITEs then 28.6 Mops at 64, of 63 million lines; READs still 20.3, of 39).',
  threadsOfRow:
    'The source does not state how many threads there were: more of them than cores share these, here each has one of its own.',
  datagramWqe:
    'Datagrams without payload leave as fast as one card receives them here, 12 cycles each; the card took a tenth longer.',
  slotPayload:
    'Real hosts and their links carry less than the closed form over PCIe, at Gen2 and below the FDR ceiling.',
  measuringDevice: 'The measuring device has times of its own beyond those that are modelled.',
  responderRate:
    'Of a WRITE that comes in, its interval or its bytes count, whichever takes longer. On the card both do where they are near each other (128 bytes).',
  standIn: 'One machine stands for several, and its card sends what theirs would only together.',
  timerUnits:
    'RNR delays below 0.3 ms last 0.11 ms longer than their units, and others do not: the timer has a grain.',
  framing: 'The source counts framing of a TLP otherwise than the specification adds it up.',
  postsOfACore:
    'A core spends on each post the 150 ns of C-161; where it posts one after the other, cards were given more: posts overlap.',
  listsOfACore: 'A core writes the WQEs of a list faster than the one of the source.',
  linesInSlot:
    'Two lines of a WQE for each datagram fill the slot beside what comes in, where the card still had room.',
  sharedHost:
    'Threads of one host share only the section of their posts, where the source’s belong to one process; on real hosts more threads than four to eight, or more outstanding requests, lower the total in other ways, too.',
  iotlb:
    'In 4 KB that the device wrote itself, the newer host without its IOMMU reads at the rate of memory outside the cache (I-203), for a reason that is not known. With the IOMMU, the older host (Sandy Bridge) takes three to four times longer for a walk in a window of 1 MB than in one of 64 MB, and loses single reads in 256 KB, for reasons that are not known; the newer one walks faster for writes in 1 MB than for reads.',
  contextCache:
    'Over more QPs than contexts fit, the model falls to its lowest rate at once, the card over hundreds of QPs. A ConnectX-5 serves 24 to 35 million: it holds the translations of 20 GiB, or reads far more of them at once.',
  sendContexts:
    'Over 144 QPs the model sends 9 million WRITEs a second, the card 15. Tried for 16, 36, 64, 144 and 256 QPs: 128 lines of four ways with six reads in flight (8.5 at 144, 5.4 at 256), 256 lines of eight ways with one, two and three reads (11, 18, 19 at 144; 4.5, 7.4, 8.5 at 256; measured 5.5), random replacement (the same). No combination gives both.',
  keysMax: `A run registers at most 65,536 regions.`,
  systemCalls: 'The source counts the whole way through three system calls, the model only the crossings.',
} as const;

export type SuspicionName = keyof typeof suspicions;
