/* What changed against another step. */

class Changes {
  constructor() {}
}
