package sessions

// DerivedPassword lets tests compare it with java.util.Random itself.
var DerivedPassword = derivedPassword
