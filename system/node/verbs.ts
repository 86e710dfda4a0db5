export type Verbs = undefined;
